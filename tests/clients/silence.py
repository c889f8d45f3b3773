"""Write files of silence, named and tagged as the players' catalog needs them: `silence.py FOLDER ARTIST TITLE…`."""

import sys
import wave
from pathlib import Path

from mediafile import MediaFile

SECONDS, RATE = 2, 8000


def write(path: Path, artist: str, title: str) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(bytes(2 * RATE * SECONDS))
    tags = MediaFile(path)
    tags.artist, tags.title, tags.album = artist, title, "Silence"
    tags.save()


if __name__ == "__main__":
    folder, artist, *titles = sys.argv[1:]
    for title in titles:
        write(Path(folder, f"{title}.wav"), artist, title)
