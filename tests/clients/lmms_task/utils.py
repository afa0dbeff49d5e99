"""A lab film as a task of lmms-eval, with the prompt of its MLVU task."""


def visual(doc):
    return [doc["path"]]


def text(doc, lmms_eval_specific_kwargs=None):
    kwargs = lmms_eval_specific_kwargs or {}
    letters = "ABCDEFG"[: len(doc["candidates"])]
    pairs = zip(letters, doc["candidates"], strict=True)
    options = [f"({letter}) {option}" for letter, option in pairs]
    question = "\n".join([doc["question"], *options])
    return kwargs.get("pre_prompt", "") + question + kwargs.get("post_prompt", "")


def results(doc, given):
    letter = given[0].strip().lstrip("(")[:1]
    return {"lab_accuracy": float(letter == doc["letter"])}


def mean(scores):
    return sum(scores) / len(scores)
