"""Ready-made criteria for the verifier of an environment.

* `extract`: extraction of the answer from the agent's last words.
* `answers`: comparison with the truth as text, number, set, JSON or normalized text.
* `math`: answers in LaTeX, by the rule of the MATH data set.
* `code`: hidden tests of the agent's code in a sandbox; `driver` is the program that runs them there.
* `repository`: named tests of a repository, which share a process with the code; `reporter` runs them in the sandbox.
* `final_state`: goals that hold at the end, and nothing else changed.
* `composite`: several criteria as one: weighted sum, gates, product.
* `chat`: the call of a language model as judge.
* `llm`: a judge's score on a scale, and a checklist with quotes.
* `pairwise`: comparison of the episodes of a group.
* `rubric`: criteria that a model writes from the differences within a group.
* `process`: turns that a judge scores; the value of each turn, from continuations of a fork.
"""

from .answers import as_number as as_number
from .answers import exact as exact
from .answers import normalized as normalized
from .answers import numeric as numeric
from .answers import same_json as same_json
from .answers import same_set as same_set
from .answers import squad_text as squad_text
from .answers import unicode_text as unicode_text
from .chat import Judge as Judge
from .chat import transcript as transcript
from .code import HiddenTest as HiddenTest
from .code import HiddenTests as HiddenTests
from .code import answer_code as answer_code
from .code import passes_tests as passes_tests
from .composite import gated as gated
from .composite import product as product
from .composite import weighted as weighted
from .extract import final_answer as final_answer
from .extract import gsm8k_answer as gsm8k_answer
from .extract import last_block as last_block
from .extract import last_number as last_number
from .final_state import reaches as reaches
from .llm import Item as Item
from .llm import checklist as checklist
from .llm import llm_judge as llm_judge
from .math import math_answer as math_answer
from .pairwise import pairwise as pairwise
from .process import judged_turns as judged_turns
from .process import monte_carlo_values as monte_carlo_values
from .rubric import evolving_rubric as evolving_rubric
