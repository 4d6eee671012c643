"""Multiple-choice questions; the letter, the text of the option, or both are accepted, in any case.

Each letter is right equally often, so an agent that always says the same letter scores 0.25 on average.
"""

from typing import NamedTuple

import quintain as qn
from quintain.judges import final_answer
from quintain.tasks import from_rows

LETTERS = "ABCD"


class Question(NamedTuple):
    text: str
    options: tuple[str, str, str, str]
    right: str


QUESTIONS = (
    Question("Which metal is liquid at 20 degrees Celsius?", ("Mercury", "Copper", "Zinc", "Nickel"), "A"),
    Question("Which planet has the shortest year?", ("Venus", "Mercury", "Mars", "Neptune"), "B"),
    Question("How many sides does a heptagon have?", ("Five", "Six", "Seven", "Eight"), "C"),
    Question("Which ocean lies between Africa and Australia?", ("Arctic", "Atlantic", "Pacific", "Indian"), "D"),
    Question("Which of these numbers is prime?", ("97", "91", "87", "51"), "A"),
    Question(
        "Which gas do green plants take up in photosynthesis?", ("Neon", "Carbon dioxide", "Argon", "Helium"), "B"
    ),
    Question("Which language is spoken by most people in Brazil?", ("Spanish", "French", "Portuguese", "Dutch"), "C"),
    Question("Which unit measures electrical resistance?", ("Volt", "Watt", "Farad", "Ohm"), "D"),
    Question("Which chess piece only moves diagonally?", ("Bishop", "Rook", "King", "Knight"), "A"),
    Question("Which organ pumps blood through the body?", ("Liver", "Heart", "Lung", "Kidney"), "B"),
    Question("Which of these animals is a reptile?", ("Salmon", "Frog", "Tortoise", "Bat"), "C"),
    Question("What is the square root of 144?", ("14", "10", "11", "12"), "D"),
)


def plain(text: str) -> str:
    """Returns a text in lower case, with single spaces and without brackets and stops."""
    return " ".join(text.casefold().translate(str.maketrans("", "", "()[].:*")).split())


def spellings(option: str) -> set[str]:
    """Returns the accepted spellings of an option such as "B) Copper": its letter, its text, and both."""
    letter, _, text = option.partition(") ")
    return {plain(letter), plain(text), plain(f"{letter} {text}")}


def right_option(answer: str, truth: str) -> qn.Score:
    """Scores 1 if the final answer names the right option and nothing else."""
    said = plain(final_answer(answer))
    return qn.Score(float(said in spellings(truth)), f"said {said!r}, accepted {sorted(spellings(truth))}")


def row(question: Question) -> dict[str, object]:
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(LETTERS, question.options, strict=True))
    prompt = (
        f"{question.text}\n{listed}\n\nReply with 'Answer: ' and the letter, the text of the option, or both, such as "
        "'Answer: B', in upper or lower case. An answer that names several options is wrong."
    )
    option = question.options[LETTERS.index(question.right)]
    return {"prompt": prompt, "answer": f"{question.right}) {option}"}


env = from_rows("multiple_choice", map(row, QUESTIONS), scorer=right_option)
