"""A quiz in an invented language. The answer key of past questions is open to the learner, as the prompt says."""

from typing import Annotated

import msgspec

import quintain as qn

STEMS = {"mira": "river", "tolu": "house", "sena": "bird", "kavo": "stone", "riga": "boat", "belu": "tree"}
ENDINGS = {"ki": "two {}s", "no": "no {}", "ma": "a big {}"}
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]

# Each quiz: words as stem and ending. A stem is asked alone before it is asked with an ending.
QUIZZES: list[list[str]] = [
    ["mira", "mira-ki", "tolu", "tolu-ki"],
    ["sena", "sena-no", "kavo", "kavo-no", "kavo-ki"],
    ["riga", "riga-ma", "belu", "belu-ma"],
    ["tolu", "tolu-ma", "sena", "sena-ma", "sena-ki"],
    ["kavo", "mira", "kavo-ma", "mira-ma"],
    ["belu", "riga", "belu-ki", "riga-ki", "riga-no"],
]


def meaning(word: str) -> str:
    stem, _, ending = word.partition("-")
    return ENDINGS[ending].format(STEMS[stem]) if ending else STEMS[stem]


class Past(msgspec.Struct):
    question: str
    you_said: str
    right_answer: str


class Quiz(qn.State):
    words: list[str]
    given: list[str] = []

    @qn.tool
    def question(self) -> str:
        """Read the current question and its number."""
        if self.over():
            raise qn.ToolError("the quiz is over")
        return f"{len(self.given) + 1} of {len(self.words)}: what does {self.words[len(self.given)]} mean?"

    @qn.tool
    def answer(self, text: Text) -> str:
        """Answer the current question, once; the next one follows. The quiz ends after the last one.

        Args:
            text: The English meaning, 1 to 40 characters.
        """
        if self.over():
            raise qn.ToolError("the quiz is over")
        self.given.append(text)
        if self.over():
            self.finish("the quiz is over")
            return "that was the last question"
        return self.question()

    @qn.tool
    def answer_key(self) -> list[Past]:
        """Read the past questions with what you said and the right answers. Answers that are given do not change."""
        return [Past(word, said, meaning(word)) for word, said in zip(self.words, self.given, strict=False)]

    def over(self) -> bool:
        return len(self.given) == len(self.words)


def tasks(split: str) -> list[qn.Task[Quiz]]:
    made: list[qn.Task[Quiz]] = []
    for n, words in enumerate(QUIZZES, 1):
        stems = {word.partition("-")[0] for word in words}
        glossary = ", ".join(f"{stem} is {STEMS[stem]}" for stem in sorted(stems))
        prompt = (
            f"Answer the {len(words)} questions of quiz {n}. {glossary}. Endings: -ki is two of it, as in 'two dogs'; "
            "-no is none of it, as in 'no dog'; -ma is big, as in 'a big dog'; without an ending it is the word alone, "
            "as in 'dog'. The answer key of past questions is open to you. Your reward is the share of questions with "
            "the right answer at the first and only try; capitals do not matter."
        )
        calls = tuple(("answer", {"text": meaning(word)}) for word in words)
        made.append(qn.Task(id=f"{split}-{n}", prompt=prompt, start=Quiz(words=list(words)), solution=calls))
    return made


@qn.reward
def right(view: qn.EpisodeView[Quiz]) -> qn.Score:
    world = view.state
    count = sum(meaning(word) == said.lower() for word, said in zip(world.words, world.given, strict=False))
    return qn.Score(count / len(world.words), f"{count} of {len(world.words)} are right")


env = qn.Environment(
    "quiz", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(right), state=Quiz, splits=("test",)
)
