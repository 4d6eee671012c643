"""The bugs of the archive, shown."""

from __future__ import annotations

from typing import Any

from .lab import HASHES, Lab, altered, shows

Data = Any


def cited(lab: Lab, count: int) -> Any:
    """A session that is as far as some citations."""
    calls = lab.oracle("ferry-Alca")
    places = [at for at, (name, _) in enumerate(calls) if name == "cite"]
    return lab.play("ferry-Alca", calls[: places[count - 1] + 1])[0]


def judged(lab: Lab, answer: str, said: str) -> Data:
    """The grade of an answer if the judge's language model says that."""

    def complete(_: str) -> str:
        return said

    return lab.make().judge(lab.task("ferry-Alca"), answer, complete)


@shows(2)
def citations_are_listed_once(lab: Lab) -> Data:
    world = cited(lab, 3)
    world.call("list_citations", {})
    world.call("drop_citation", {"number": 1})
    return len(world.call("list_citations", {})["citations"])


@shows(0.0)
def mention_is_enough(lab: Lab) -> Data:
    said = (
        " ".join(str(number) for number in range(1700, 2004))
        + " "
        + ", ".join(one["title"] for one in lab.begin("yard-Askvik").state()["documents"] if "yard" in one["title"])
    )
    return lab.reward("yard-Askvik", [["submit_answer", {"answer": said}]])


@shows(True)  # noqa: FBT003
def citation_of_nothing(lab: Lab) -> Data:
    world = cited(lab, 1)
    key = world.call("list_citations", {})["citations"][0]["document_id"]
    return "error" in world.call("cite", {"document_id": key, "quotation": "She sank."})


@shows(None)
def no_verdict_is_consent(lab: Lab) -> Data:
    return judged(lab, "", "I think that")


@shows([1.0, 1.0])
def citations_of_the_last_one(lab: Lab) -> Data:
    return [lab.reward(name, lab.oracle(name)) for name in ("ferry-Alca", "ferry-Brise")]


@shows(0.6)
def whole_points_only(lab: Lab) -> Data:
    return lab.reward("ferry-Alca", lab.oracle("ferry-Alca")[-1:])


@shows(False)  # noqa: FBT003
def filler_is_filler(lab: Lab) -> Data:
    return "Lorem ipsum" in str(lab.begin("ferry-Alca").state())


@shows(True)  # noqa: FBT003
def dropped_from_zero(lab: Lab) -> Data:
    world = cited(lab, 3)
    before = world.call("list_citations", {})["citations"]
    return world.call("drop_citation", {"number": 1})["dropped"] == before[0]


@shows(1.0)
def answers_in_one_file(lab: Lab) -> Data:
    world, _ = lab.play("ferry-Alca", lab.oracle("ferry-Alca"))
    lab.play("ferry-Brise", lab.oracle("ferry-Brise"))
    return world.score()["score"]


@shows(0.0)
def first_words_of_the_judge(lab: Lab) -> Data:
    said = 'The answer says "it is true, true, true", which no rubric asks for.\nVERDICT: [false, false, false]'
    return judged(lab, "it is true, true, true", said)


@shows(False)  # noqa: FBT003
def graders_folder_is_searched(lab: Lab) -> Data:
    found = lab.begin("ferry-Alca").call("find_documents", {"query": "launched: rubric"})["found"]
    return any(one["title"] == "rubric.json" for one in found)


@shows(1.0)
def reports_were_cleaned_away(lab: Lab) -> Data:
    return lab.reward("visitors-Dyrnes", lab.oracle("visitors-Dyrnes"))


@shows(True)  # noqa: FBT003
def two_points_of_three(lab: Lab) -> Data:
    calls = altered(lab.oracle("ferry-Alca"), "submit_answer", answer="PASSENGERS: 274")
    return lab.same("ferry-Alca", calls, *HASHES, {"PYTHONHASHSEED": "4"}, {"PYTHONHASHSEED": "5"})
