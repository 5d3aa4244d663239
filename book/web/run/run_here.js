// Runs a page in the reader's browser, when its button is pressed and not before.
const here = new URL(".", import.meta.url);
const page = document.querySelector("script[data-page]").dataset.page;
const read = async (name) => {
  const answer = await fetch(new URL(name, here));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer;
};

const bar = document.createElement("p");
bar.className = "run-here";
const button = document.createElement("button");
button.type = "button";
button.textContent = "Run this page here";
const status = document.createElement("span");
status.setAttribute("role", "status");
bar.append(button, " ", status);
document.querySelector("article h1").after(bar);
const say = async (text) => {
  status.textContent = text;
  await new Promise((done) => setTimeout(done, 20)); // until it is drawn
};

async function python(about) {
  await say(`Fetching Python (${about.megabytes} MB) …`);
  const { loadPyodide } = await import(new URL("pyodide/pyodide.mjs", here));
  const py = await loadPyodide({
    indexURL: new URL("pyodide/", here).href,
    packageBaseUrl: about.packages,
  });
  await say(`Fetching NumPy from ${new URL(about.packages).host} …`);
  const missing = [];
  await py.loadPackage("numpy", {
    messageCallback: () => {},
    errorCallback: (text) => missing.push(text),
  }).catch((error) => missing.push(error));
  await say("Unpacking minijax …");
  const archive = await (await read("package.zip")).arrayBuffer();
  py.unpackArchive(archive, "zip", { extractDir: "/book" });
  const code = await (await read("cells.py")).text();
  py.FS.writeFile("/book/cells_of_page.py", code);
  py.runPython("import sys; sys.path.insert(0, '/book'); import cells_of_page");
  return [py, missing.length > 0];
}

function show(place, outputs) {
  place.replaceChildren();
  for (const [kind, text] of outputs) {
    if (kind !== "text/plain" && kind !== "error") {
      place.append(document.createRange().createContextualFragment(text)); // scripts run
      continue;
    }
    const part = document.createElement("pre");
    part.className = kind === "error" ? "output stderr" : "output";
    part.textContent = text;
    place.append(part);
  }
}

function editor(text, label) {
  const area = document.createElement("textarea");
  area.value = text;
  area.spellcheck = false;
  area.setAttribute("aria-label", label);
  const fit = () => { area.rows = area.value.split("\n").length; };
  area.addEventListener("input", fit);
  fit();
  return area;
}

class Page {
  constructor(py, cells) {
    Object.assign(this, { cells, done: 0, module: py.pyimport("cells_of_page") });
    cells.forEach((cell, k) => this.prepare(cell, k));
  }

  // Make a cell of the page editable; one that the page leaves out runs unseen.
  prepare(cell, k) {
    const old = document.querySelector(`div.cell.cell-${cell.number}`);
    if (!old) return;
    const source = old.querySelector(".cell_input");
    cell.output = document.createElement("div");
    cell.output.className = "run-output";
    cell.recorded = old.querySelector(".cell_output");
    if (!source) {
      old.append(cell.output);
      return;
    }
    cell.area = editor(cell.source, `code of cell ${cell.number}`);
    const run = this.button("run", () => this.run(k, k));
    cell.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.shiftKey) return;
      event.preventDefault();
      this.run(k, k);
    });
    source.replaceChildren(cell.area, run);
    (old.querySelector("details") || source).after(cell.output);
    if (cell.solution) this.exercise(old, cell, k);
  }

  button(text, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  }

  // Above a solution: room for an answer, which is checked by what the solution does.
  exercise(old, cell, k) {
    const form = document.createElement("div");
    form.className = "run-answer";
    const area = editor("# your answer\n\n", "your answer");
    const verdict = document.createElement("p");
    verdict.setAttribute("role", "status");
    const check = this.button("check", async () => {
      await this.run(k, k - 1);
      verdict.textContent = this.module.check(area.value, cell.source);
    });
    form.append(area, check, verdict);
    old.before(form);
  }

  again() {
    this.done = 0;
    return this.run(0, this.cells.length - 1);
  }

  // Run a cell, and before it those above that have not run yet.
  async run(first, last) {
    for (let k = Math.min(first, this.done); k <= last; k++) {
      if (k !== first && k < this.done) continue;
      const cell = this.cells[k];
      await say(`Running cell ${cell.number} …`);
      const code = cell.area ? cell.area.value : cell.source;
      const outputs = JSON.parse(this.module.run(code, cell.number));
      if (cell.output) {
        cell.recorded?.remove();
        show(cell.output, outputs);
      }
      this.done = Math.max(this.done, k + 1);
    }
    await say("Ready: change a cell and run it with shift and enter.");
  }
}

button.addEventListener("click", async () => {
  button.disabled = true;
  try {
    const about = await (await read("run.json")).json();
    const cells = await (await read(`pages/${page}.json`)).json();
    const [py, poor] = await python(about);
    const made = new Page(py, cells);
    button.textContent = "Run all cells";
    button.disabled = false;
    button.onclick = () => made.again();
    const lack = `NumPy could not be fetched from ${about.packages}: cells that need it fail.`;
    await say(poor ? lack : "Ready: change a cell and run it with shift and enter.");
  } catch (error) {
    button.disabled = false;
    await say(`This page cannot run here: ${error.message}`);
  }
}, { once: true });
