"""The questions of the benchmark through VLMEvalKit's own Video-MME and its client for endpoints.

    PYTHONPATH=VLMEvalKit python vlmevalkit.py FOLDER ADDRESS METHOD KEY

Its ``run.py`` imports every model and dataset, with gigabytes of dependencies. Three of its modules
are enough: the prompt and the scoring of Video-MME (``dataset.videomme``), and the client behind
``--base-url … --video-llm --local-media`` (``api.lmdeploy``). They are loaded unchanged, from
packages whose ``__init__`` is left out.
"""

import importlib
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pandas as pd


def bare(name, **attributes):
    """A package without its ``__init__``."""
    parent, _, last = name.rpartition(".")
    if parent:
        folder = Path(sys.modules[parent].__path__[0], last)
    else:
        folder = Path(importlib.util.find_spec(name).origin).parent
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    vars(package).update(attributes)
    sys.modules[name] = package


def kind(_dataset, **_):
    return "Video-MCQ"


def table(folder, rows):
    """The questions as Video-MME's table, and the film where it looks for it."""
    frame = []
    for index, row in enumerate(rows):
        pairs = zip("ABCDEFG", row["candidates"], strict=False)
        candidates = [f"{letter}. {option}" for letter, option in pairs]
        line = {"index": index, "video": "world", "video_path": "./video/world.mp4"}
        line |= {"duration": "short", "domain": "Knowledge", "sub_category": "Humanity & History"}
        line |= {"task_type": "Object Recognition", "subtitle_path": "none"}
        line |= {"question": row["question"], "candidates": str(candidates)}
        frame.append({**line, "answer": row["letter"]})
    path = folder / "Video-MME.tsv"
    pd.DataFrame(frame).to_csv(path, sep="\t", index=False)
    return path


def main():
    data, address, method, key = sys.argv[1:]
    bare("vlmeval")
    bare("vlmeval.api", OpenAIWrapper=None)
    bare("vlmeval.dataset", DATASET_TYPE=kind, DATASET_MODALITY=kind)
    bare("vlmeval.dataset.utils", DEBUG_MESSAGE="", build_judge=None)
    client = importlib.import_module("vlmeval.api.lmdeploy").LMDeployAPI
    benchmark = importlib.import_module("vlmeval.dataset.videomme").VideoMME
    rows = json.loads(Path(data, "questions.json").read_text())
    folder = Path(tempfile.mkdtemp())
    # the film keeps its place: the server opens it below --films only
    (folder / "video").symlink_to(Path(rows[0]["path"]).parent)
    place = {"data_file": str(table(folder, rows)), "root": str(folder)}
    benchmark.prepare_dataset = lambda *_: place
    dataset = benchmark(nframe=8)
    # as run.py --base-url --video-llm --local-media makes it
    model = client(
        model=f"longtake/{method}",
        api_base=f"{address}/v1/chat/completions",
        key=key,
        max_tokens=2**15,
        retry=1,
        timeout=1800,
        video_llm=True,
        local_media=True,
        verbose=False,
    )
    prompts = [dataset.build_prompt(number, video_llm=True) for number in range(len(rows))]
    dataset.data["prediction"] = [model.generate(prompt, "Video-MME") for prompt in prompts]
    results = folder / "longtake_Video-MME.xlsx"
    dataset.data.to_excel(results)
    rating = benchmark.evaluate(str(results), model="exact_matching")
    print(rating["overall"]["overall"])
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
