"""Cover art: every template draws every script within its margins, always the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsvc.reports import typesetting, writing
from musicsvc.reports.art import covers
from musicsvc.reports.art.chance import Chance
from tests.reports.pictures import contrast, difference, hexadecimal, opened
from tests.support.examples import examples

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

SCALE = 0.2
MARGIN = 30  # of a page of 1000, free of text
READABLE = 4.5

TEXTS = {
    "latin": ("The Quiet Hours", "Mara Quint"),
    "one letter": ("Z", "Y"),
    "cyrillic": ("Белые ночи над Невой", "Анна Соколова"),
    "greek": ("Το καλοκαίρι που χάθηκε", "Νίκος Παππάς"),
    "arabic": ("أغنية الصباح في المدينة القديمة", "فيروز الشامي"),
    "hebrew": ("שיר של בוקר בירושלים", "נועה לוי"),
    "devanagari": ("क्षितिज के पार की यात्रा", "श्रीनिवास त्रिपाठी"),
    "thai": ("บทเพลงแห่งสายฝนยามค่ำคืนในกรุงเทพมหานคร", "วงดนตรีเสียงทอง"),
    "han": ("月光下的古老城市与海", "林小雨"),
    "kana": ("ゆめのあとのクラッシュシンドローム", "とうきょうスカイライン"),
    "hangul": ("새벽의 노래를 부르는 사람들", "한강 밴드"),
    "mixed": ("Tokyo 東京 Москва القاهرة กรุงเทพ", "DJ Ω & 김민수"),
}
EXTREMES = {
    "long words": (("Lighthouse keepers " * 7)[:120], ("of the northern shore " * 6)[:120]),
    "one latin word": ("A" * 60 + "b" * 60, "W" * 120),
    "one arabic word": (("موسيقى" * 20)[:120], ("كلمة" * 30)[:120]),
    "one hebrew word": ("ש" * 120, "ם" * 120),
    "one devanagari word": ("क्षि" * 30, "क्" * 60),
    "one thai word": ("ก" * 120, "ก่" * 60),
    "one hangul word": ("밤" * 120, "뷁" * 120),
    "wide signs": ("春江花月夜" * 24, "ー" * 120),
    "signs of no font": ("\ue001" * 120, "\ue000" * 120),
    "emoji": ("\U0001f3b5" * 120, "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 24),
    "stacked marks": ("Z" + "\u0301" * 119, "o" + "\u0323" * 119),
}
SCRIPTS = [name for name in TEXTS if name not in {"latin", "one letter", "mixed"}]


@pytest.fixture(params=covers.templates(), ids=lambda template: template.name)
def template(request: pytest.FixtureRequest) -> covers.Template:
    chosen: covers.Template = request.param
    return chosen


def page(template: covers.Template, title: str, artist: str) -> dict[str, object]:
    return covers._page(template, writing.drawable(title), writing.drawable(artist))


def text_box(template: covers.Template, title: str, artist: str) -> tuple[float, ...]:
    """Return the box in which the text changes the picture, in points of the page."""
    whole = page(template, title, artist)
    drawn, bare = (typesetting.png("cover.typ", data, SCALE) for data in (whole, {**whole, "areas": []}))
    box = difference(drawn, bare)
    assert box is not None
    return tuple(edge / SCALE for edge in box)


def test_there_are_at_least_six_templates_with_ids_from_one() -> None:
    known = covers.templates()
    assert [template.id for template in known] == list(range(1, len(known) + 1))
    assert len({template.name for template in known}) == len(known) >= 6
    assert all(template.description for template in known)


@pytest.mark.slow
def test_a_cover_is_a_png_of_1000_by_1000_and_always_the_same(template: covers.Template) -> None:
    first = covers.cover(template.id, *TEXTS["mixed"])
    assert opened(first).size == (1000, 1000)
    assert covers.cover(template.id, *TEXTS["mixed"]) == first
    assert covers.cover(template.id, "Another", "Name") != first


@pytest.mark.slow
def test_covers_drawn_at_once_are_those_drawn_one_by_one() -> None:
    alone = [covers.cover(2, title, artist) for title, artist in TEXTS.values()]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda text: covers.cover(2, *text), TEXTS.values())) == alone


def test_an_emoji_is_drawn_as_itself_and_not_as_a_box() -> None:
    texts = ["\U0001f43a", "\U0001f3b7", writing.SIGN]
    pages = [page(covers.templates()[1], text, "x") for text in texts]
    pictures = {typesetting.png("cover.typ", {**pages[0], "areas": each["areas"]}, SCALE) for each in pages}
    assert len(pictures) == 3


@pytest.mark.parametrize("size", [0, 15, 3001])
def test_a_cover_of_a_senseless_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="pixels per side"):
        covers.cover(1, "Title", "Artist", size)


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(KeyError):
        covers.cover(0, "Title", "Artist")


@pytest.mark.parametrize("size", [16, 200, 250, 300, 1000])
def test_a_thumbnail_has_the_size_asked_for(template: covers.Template, size: int) -> None:
    assert opened(covers.thumbnail(template.id, size)).size == (size, size)


@pytest.mark.parametrize("size", [0, 15, 1001, 5000])
def test_a_thumbnail_of_a_senseless_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="pixels per side"):
        covers.thumbnail(1, size)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTREMES)
def test_text_of_any_length_stays_within_the_margins(name: str, long: bool) -> None:
    begin, step = (0, 1) if long else (list(EXTREMES).index(name) % 2, 2)
    for template in covers.templates()[begin::step]:
        box = text_box(template, *EXTREMES[name])
        assert min(box) >= MARGIN, (template, box)
        assert max(box) <= 1000 - MARGIN, (template, box)


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_any_script_stays_within_the_margins(name: str) -> None:
    for template in covers.templates()[len(name) % 2 :: 4]:
        box = text_box(template, *TEXTS[name])
        assert min(box) >= MARGIN, box
        assert max(box) <= 1000 - MARGIN, box


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_drawn_and_not_replaced_by_boxes(name: str) -> None:
    title, artist = TEXTS[name]
    assert writing.SIGN not in writing.drawable(title + artist)
    drawn = page(covers.templates()[1], title, artist)
    boxes = page(covers.templates()[1], writing.SIGN * len(title), writing.SIGN * len(artist))
    pictures = [typesetting.png("cover.typ", {**drawn, "areas": data["areas"]}, SCALE) for data in (drawn, boxes)]
    assert difference(*pictures) is not None


@pytest.mark.parametrize(("joined", "apart"), [("سلام", "س\u200cل\u200cا\u200cم"), ("क्ष", "क्\u200cष")])
def test_letters_that_join_are_joined(joined: str, apart: str) -> None:
    pages = [page(covers.templates()[1], text, "x") for text in (joined, apart)]
    pictures = [typesetting.png("cover.typ", {**pages[0], "areas": data["areas"]}, SCALE) for data in pages]
    assert difference(*pictures) is not None


def test_a_title_from_right_to_left_stands_at_the_right() -> None:
    left, _, right, _ = text_box(covers.templates()[0], "ليل", "نور")
    assert left > 1000 - right
    left, _, right, _ = text_box(covers.templates()[0], "Night", "Light")
    assert left < 1000 - right


@pytest.mark.parametrize("text", ['#panic("x")', "*bold* _it_ $x^2$ // no", "</svg><script>", '"}]}', "\\u{41} @a <b>"])
def test_what_looks_like_markup_is_drawn_as_it_stands(text: str) -> None:
    assert opened(covers.cover(1, text, text)).size == (1000, 1000)


def test_text_can_be_read_on_every_picture(template: covers.Template) -> None:
    for seed in ("one", "two", "three"):
        picture = template.draw(Chance(seed))
        giant = covers._giant(picture.giant, "M") if picture.giant else None
        image = opened(typesetting.png("cover.typ", {"svg": picture.svg, "giant": giant, "areas": []}, 0.1))
        for area in picture.areas:
            place = image.crop((area.x // 10, area.y // 10, (area.x + area.width) // 10, (area.y + area.height) // 10))
            found = place.getcolors(10_000) or []
            grounds = [area.plate] if area.plate else [hexadecimal(colour) for _, colour in found]
            for style in filter(None, (area.title, area.artist)):
                ratios = sorted(contrast(style.fill, ground) for ground in grounds)
                assert ratios[len(ratios) // 50] >= READABLE, (seed, style)


anything = st.text(st.characters(), max_size=120) | st.text("aWم ש́क्ि\u200d่กあー한\U0001f468", max_size=120)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(number=st.integers(1, len(covers.templates())), title=anything, artist=anything)
def test_no_text_breaks_a_cover_or_leaves_it(number: int, title: str, artist: str) -> None:
    box = text_box(covers.templates()[number - 1], title, artist)
    assert min(box) >= MARGIN, box
    assert max(box) <= 1000 - MARGIN, box
