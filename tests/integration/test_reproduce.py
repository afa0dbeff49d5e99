"""Commands that ``longtake reproduce --dry-run`` lists run as they stand, with simulated models."""

import json
import shlex
import shutil

import pytest
from support.annotations import EGOSCHEMA, LONGVIDEOBENCH, LVBENCH, MLVU, NEXTQA, VIDEOMME
from support.working import make_film

from longtake.agents.team import Member, write_team
from longtake_bench.benchmarks.long_videos import DEV
from longtake_bench.presets import papers, read_paper

FILMS = ("videos/u1.mp4", "videos/v.mp4", "videos/k.mp4", "videos/7.mp4", "data/x.mp4")
MLVU_FILMS = ("video/3_ego/ego_35.mp4", "video/ego_35.mp4")
SUBTITLES = "1\n00:00:00,000 --> 00:00:02,000\na man runs\n"


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The files of every benchmark of the papers, with two questions about a film of 4 s."""
    folder = tmp_path_factory.mktemp("data")
    film = make_film(folder / "film.mp4", 4)
    for name in (*FILMS, *MLVU_FILMS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(film, folder / name)
    rows = [{"q_uid": "u1", **EGOSCHEMA}, {"q_uid": "u2", **EGOSCHEMA}]
    shutil.copy(film, folder / "videos/u2.mp4")
    captions = {"u1": ["#C C walks", "#C C sits"], "u2": ["#C C eats", "#C C rests"]}
    write(folder, "questions.json", rows)
    write(folder, "subset_answers.json", {"u1": 3, "u2": 1})
    write(folder, "subset_anno.json", {uid: {**EGOSCHEMA, "truth": 1} for uid in captions})
    for name in ("lavila_subset.json", "lavila_fullset.json"):
        write(folder, name, captions)
    for split in ("val", "test"):
        asked = "7,100,4,4,why run,1,6,CW,a,b,c,d,e\n7,100,4,4,when,0,8,TN,a,b,c,d,e\n"
        write(folder, f"{split}.csv", NEXTQA + asked)
    write(folder, "captions_1fps.json", {"7": ["a dog", "a dog runs", "a dog rests"]})
    second = {**LONGVIDEOBENCH, "id": "v_1"}
    write(folder, "lvb_val.json", [LONGVIDEOBENCH, second])
    write(folder, "subtitles/v_en.json", [])
    write(folder, "map_vid_vidorID.json", {"7": "7"})
    meta = {"key": "k", "qa": [LVBENCH, {**LVBENCH, "uid": 8}]}
    write(folder, "video_info.meta.jsonl", meta)
    for name in DEV:
        write(folder, f"json/{name}.json", [MLVU, MLVU] if name == "3_ego" else [])
    write(folder, "test_multi_choice_tasks.json", [MLVU, {**MLVU, "question": "Which?"}])
    write(folder, "videomme.json", [VIDEOMME, {**VIDEOMME, "question_id": "1-2"}])
    write(folder, "subtitle/x.srt", SUBTITLES)
    return folder


@pytest.mark.parametrize("paper", [name for name in papers() if read_paper(name).tables])
def test_listed_commands_run_as_they_stand(run, data, tmp_path, paper):
    # up to 5 s: a run on films for each command
    team = tmp_path / "team.toml"
    write_team(team, [Member(name=name, model="lab/acuity=1") for name in ("ann", "bob", "cid")])
    # real captions, which VideoAgent reads, are not for simulated models
    config = tmp_path / "config.toml"
    config.write_text(f'[models.reader]\nbackend = "scripted"\nreplies = {["A"] * 50}\n')
    model = "reader" if paper == "videoagent" else "lab/acuity=1"
    models = ("--model", model, "--config", config, "--team", team)
    given = ("--data", data, *models, "--limit", 1, "--out", tmp_path)
    code, out, err = run("reproduce", paper, "--dry-run", "--json", *given)
    assert code == 0, err
    rows = [row for row in json.loads(out)["rows"] if "command" in row]
    # one of each table: all of them take a minute
    lines = {row["table"]: shlex.split(row["command"]) for row in rows}
    once = {tuple(words[: words.index("--data")]): words for words in lines.values()}
    for words in once.values():
        code, _, err = run(*words[1:])
        assert code == 0, f"{shlex.join(words)}: {err}"
