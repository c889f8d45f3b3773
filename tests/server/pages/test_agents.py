"""Names of browsers in the list of sessions."""

import pytest

from musicsvc.server.handlers.pages.settings import describe

KIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS, MAC = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
ANDROID, IPHONE = "Mozilla/5.0 (Linux; Android 14; SM-S911B)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X)"
IPAD = "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X)"


@pytest.mark.parametrize(
    ("agent", "described"),
    [
        (f"{WINDOWS} {KIT} Chrome/125.0.0.0 Safari/537.36 Edg/125.0.0.0", "Edge on Windows"),
        (f"{ANDROID} {KIT} Chrome/125.0.0.0 Mobile Safari/537.36 EdgA/124.0.0.0", "Edge on Android"),
        (f"{IPHONE} {KIT} Version/17.0 EdgiOS/124.0.0.0 Mobile/15E148 Safari/604.1", "Edge on iOS"),
        (f"{WINDOWS} {KIT} Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0", "Opera on Windows"),
        ("Opera/9.80 (Macintosh; Intel Mac OS X 10.14.1) Presto/2.12.388", "Opera on macOS"),
        (f"{ANDROID} {KIT} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36", "Samsung Internet on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0", "Firefox on Linux"),
        ("Mozilla/5.0 (X11; Ubuntu; rv:126.0) Gecko/20100101 Firefox/126.0", "Firefox on Linux"),
        (f"{IPHONE} {KIT} FxiOS/126.0 Mobile/15E148 Safari/605.1.15", "Firefox on iOS"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {KIT} Chrome/125.0.0.0 Safari/537.36", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {KIT} Chromium/125.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"{IPAD} {KIT} CriOS/125.0.6422.80 Mobile/15E148 Safari/604.1", "Chrome on iOS"),
        (f"{MAC} {KIT} Version/17.4.1 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (Linux) Mobile", "A browser on Linux"),
        ("curl/8.5.0", "curl"),
        ("", "An unknown browser"),
    ],
)
def test_a_browser_is_described_with_its_system(agent: str, described: str) -> None:
    assert describe(agent) == described
