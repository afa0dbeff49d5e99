"""The library over HTTP: only films of this server are shown."""

from __future__ import annotations

from unit.library.shelf import SETTINGS, add
from unit.library.shelf import film as make_film

from longtake.lab.encoder import LabEncoder
from longtake.library import Library
from longtake.perception.senses import Senses


def test_only_films_below_the_folders_are_found(client, options, film, tmp_path, film_folder):
    state = client.app._app.state.longtake
    encoder = LabEncoder()
    senses = Senses(SETTINGS.perception, tmp_path / "cache", images=encoder)
    library = Library(tmp_path / "library", SETTINGS, senses=senses, sentences=encoder)
    state.__dict__["library"] = library
    secret = make_film(tmp_path / "elsewhere", "s.mp4", film_folder, "a walrus", "x", frames=50)
    (served,) = options.films
    served.joinpath("plain.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\na walrus swims\n")
    add(library, served, secret, parts=("subtitles",))
    assert [each["id"] for each in client.get("/api/v1/library/films").json()] == [film]
    found = client.get("/api/v1/library/search", params={"q": "walrus"}).json()
    assert found["searched"] == 1
    (hits,) = found["films"]
    assert (hits["film"]["id"], hits["moments"][0]["time"]) == (film, 1.0)
    assert hits["moments"][0]["sure"]
    refused = client.get("/api/v1/library/search", params={"q": "walrus", "where": "colour=red"})
    assert refused.status_code == 422
