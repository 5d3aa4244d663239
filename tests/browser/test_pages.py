"""The built book in a browser, as `make browser` runs it; nothing is fetched."""

import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
PAGES = re.findall(r"(?:root|file): (\S+)", TOC)
BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"
FOUND = filter(None, map(shutil.which, BROWSERS))
BROWSER = os.environ.get("BROWSER_PATH") or next(FOUND, None)
OPTIONS = {"preload": False, "resultTypes": ["violations"]}  # of axe
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *args):
        """Be silent."""


@pytest.fixture(scope="module")
def site():
    """The address of the built book on this machine."""
    if not (HTML / "index.html").exists():
        pytest.skip("the book is not built: make book")
    handler = functools.partial(Quiet, directory=str(HTML))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    """A browser that is on this machine already; none is fetched."""
    if BROWSER is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser, site):
    """An empty page that fails its test if it complains or asks for another place."""
    opened, wrong = browser.new_page(viewport=WIDE, color_scheme="light"), []

    def said(message):
        if message.type == "error":
            wrong.append(f"console: {message.text}")

    def asked(request):
        if not request.url.startswith((site, "data:", "blob:")):
            wrong.append(f"outside: {request.url}")

    opened.on("console", said)
    opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    opened.on("request", asked)
    yield opened
    opened.close()
    assert not wrong


def settled(page, address):
    """Open an address and wait for what it loads."""
    answer = page.goto(address, wait_until="load")
    assert answer is None or answer.ok, address
    return page


def overflow(page):
    """By how many pixels a page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.mark.parametrize("name", PAGES)
def test_page_opens_at_a_desk_and_on_a_phone_in_light_and_dark(page, site, name):
    settled(page, f"{site}/{name}.html")
    assert page.title() and page.locator("article h1").count() == 1
    assert page.get_attribute("html", "lang") == "en"
    assert page.locator("head meta[name=description]").count() <= 1
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len({*grounds}) == 2
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        assert overflow(page) <= 0, size


def serious(page, **options):
    """What axe finds on a page that keeps a reader out."""
    made = axe.Axe().run(page, options=OPTIONS | options)
    return [
        f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}"
        for rule in made.response["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:4]
    ]


@pytest.mark.parametrize("name", [*PAGES, "search", "404"])
def test_nothing_serious_keeps_a_reader_out(page, site, name):
    settled(page, f"{site}/{name}.html")
    found = serious(page, rules={"color-contrast": {"enabled": False}})
    assert not found, "\n".join(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "book/notation", "chapters/06_vmap"])
def test_text_stands_out_from_its_ground(page, site, name, scheme):
    page.emulate_media(color_scheme=scheme)
    settled(page, f"{site}/{name}.html")
    found = serious(page, runOnly=["color-contrast"])
    assert not found, "\n".join(found)


def test_search_finds_sentences(page, site):
    settled(page, f"{site}/search.html?q=cotangent")
    page.wait_for_selector("#search-results li p.context")
    texts = page.locator("#search-results li p.context").all_inner_texts()
    assert len(texts) > 3 and any("cotangent" in text for text in texts)
    assert not any("Many processors" in text for text in texts)  # a label of the lift


def test_search_leads_to_sections(page, site):
    settled(page, f"{site}/search.html?q=perturbation+confusion")
    section = page.locator("#search-results ul.sections a").first
    section.wait_for()
    place = section.get_attribute("href")
    assert re.fullmatch(r"(chapters|book)/\w+\.html#[\w-]+", place)
    section.click()
    page.wait_for_url(f"{site}/{place}")
    assert page.locator(f"section#{place.partition('#')[2]}").count() == 1


def neighbour(name, way):
    """The page to which the link at the foot of a page leads, or None."""
    text = (HTML / f"{name}.html").read_text(encoding="utf-8")
    tag = re.search(rf'<a class="{way}"\s+href="([^"#]+)\.html"', text)
    place = (HTML / name).parent / tag[1] if tag else None
    return place and place.resolve().relative_to(HTML.resolve()).as_posix()


def test_next_leads_through_the_book_and_previous_back(page, site):
    assert [neighbour(name, "right-next") for name in PAGES] == [*PAGES[1:], None]
    assert [neighbour(name, "left-prev") for name in PAGES] == [None, *PAGES[:-1]]
    settled(page, f"{site}/index.html")
    page.locator("a.right-next").first.click()
    page.wait_for_url(f"{site}/{PAGES[1]}.html")


def test_folds_open_by_keyboard(page, site):
    settled(page, f"{site}/chapters/04_forward.html")
    fold = page.locator("article details").first
    assert fold.get_attribute("open") is None
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert fold.get_attribute("open") is not None


def test_a_name_in_code_leads_to_the_cell_that_defines_it(page, site):
    settled(page, f"{site}/chapters/06_vmap.html")
    link = page.locator("pre a.definition").first
    page.keyboard.press("Tab")
    link.focus()
    assert "minijax/" in link.get_attribute("title")
    place = link.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}/chapters/{place}")
    assert page.locator(f"[id='{place.partition('#')[2]}']").count() == 1


def test_a_floor_of_the_lift_leads_to_its_page(page, site):
    settled(page, f"{site}/chapters/06_vmap.html")
    page.locator(".mjf-boxes a[aria-label^='Pytrees']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}/chapters/05_pytrees.html")


def test_rows_and_columns_of_the_grid_lead_to_pages(page, site):
    settled(page, f"{site}/book/grid.html")
    for text in ("add", "jvp"):
        place = page.locator("article table a", has_text=text).first
        assert place.get_attribute("href").startswith("../chapters/")


def test_a_line_of_the_function_lights_all_floors(page, site):
    settled(page, f"{site}/book/one_function.html")
    ground = (
        "getComputedStyle(document.querySelector('.floor-{} .of-3')).backgroundColor"
    )
    before = page.evaluate(ground.format("kernels"))
    page.locator(".floor-python .of-3").focus()
    lit = {page.evaluate(ground.format(name)) for name in ("jaxpr", "kernels", "llvm")}
    assert len(lit) == 1 and before not in lit


def test_a_wrong_address_is_told_so(page, site):
    settled(page, f"{site}/404.html")
    assert page.locator("h1").inner_text() == "There is no such floor"
    assert page.locator("a").first.get_attribute("href") == "/minijax/"


@pytest.mark.parametrize("name", ["09_linearize", "10_reverse", "20_memory"])
def test_steppers_are_walked_by_keyboard(page, site, name):
    settled(page, f"{site}/chapters/{name}.html")
    stepper = page.locator(".mjf-steps").first
    said, items = stepper.locator("p span"), stepper.locator("li")
    assert said.inner_text() == f"step 1 of {items.count()}"
    stepper.locator("button", has_text="next").press("Enter")
    assert said.inner_text() == f"step 2 of {items.count()}"
    stepper.locator("input").press("End")
    assert said.inner_text() == f"step {items.count()} of {items.count()}"
    assert items.last.is_visible()
    assert stepper.locator("button", has_text="next").is_disabled()
    page.emulate_media(media="print")
    assert all(items.nth(k).is_visible() for k in range(items.count()))


def test_a_page_runs_in_the_browser_when_its_button_is_pressed(browser, site):
    if not (HTML / "_static" / "run" / "run.json").exists():
        pytest.skip("the book was built without npm")
    page, asked = browser.new_page(viewport=WIDE), []
    page.on("request", lambda request: asked.append(request.url))
    settled(page, f"{site}/chapters/01_interception.html")
    shown = page.locator("div.cell:has(> .cell_input)").first
    number = int(re.search(r"cell-(\d+)", shown.get_attribute("class"))[1])
    few = [
        {"number": 0, "source": "import sys\nsix = 6", "solution": False},
        {"number": number, "source": "import minijax\nsix * 7", "solution": False},
    ]
    page.route("**/pages/01_interception.json", lambda way: way.fulfill(json=few))
    page.route("https://**", lambda way: way.abort())  # NumPy is not to be had
    assert not any("run.json" in url or "pyodide" in url for url in asked)
    status = page.locator(".run-here span")
    page.locator(".run-here button").press("Enter")
    page.wait_for_function(
        "document.querySelector('.run-here span').textContent.includes('NumPy could')",
        timeout=120_000,
    )
    assert any(url.endswith("pyodide.asm.wasm") for url in asked)
    cell = page.locator(f"div.cell.cell-{number}")
    assert cell.locator("textarea").input_value() == few[1]["source"]
    cell.locator("textarea").press("Shift+Enter")
    cell.locator(".run-output pre").wait_for()
    assert cell.locator(".run-output pre").inner_text() == "42"
    assert status.inner_text().startswith("Ready")
    cell.locator("textarea").fill("1 / 0")
    cell.locator("button").press("Enter")
    cell.locator(".run-output .stderr").wait_for()
    assert "ZeroDivisionError" in cell.locator(".run-output").inner_text()
    page.close()
