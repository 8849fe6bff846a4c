// Live progress, sliders, the play button, and parts of a page that are filled in when they are worked out.
// Every page works without this file.

const pause = (time) => new Promise((done) => setTimeout(done, time));

// Put a part of the page at an address in the place of the part of the same name that is shown. Pages are made from
// templates that escape everything from a table, and a document that is parsed like this runs no script.
const refill = async (place, address, wanted = () => true) => {
  for (;;) {
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = page.getElementById(place.id);
    if (!wanted()) return;
    if (!part) return location.reload();
    if (!part.hasAttribute("data-wait")) {
      const fresh = document.importNode(part, true);
      place.replaceWith(fresh);
      return bind(fresh);
    }
    await pause(250);
  }
};

// Call a function once nothing has happened for a moment; the function is told whether it is still the newest.
const settled = (act) => {
  let turn = 0;
  return async () => {
    const mine = ++turn;
    await pause(200);
    if (mine === turn) act(() => mine === turn);
  };
};

const query = (form) => `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const write = (root, values) => {
  for (const [name, text] of Object.entries(values)) {
    for (const place of root.querySelectorAll(`[data-out=${name}]`)) place.textContent = text;
  }
};

const follow = (place) => {
  if (place.dataset.status !== "running") return;
  const source = new EventSource(`${place.dataset.live}/events`);
  let waiting = false;
  const look = async () => {
    if (waiting) return;
    waiting = true;
    const answer = await fetch(`${place.dataset.live}/live`);
    if (answer.ok) place.innerHTML = await answer.text(); // our own template, escaped on the server
    waiting = false;
  };
  source.onmessage = look;
  source.addEventListener("end", async () => {
    source.close();
    waiting = false;
    await look();
    document.querySelector("[data-stop]")?.remove();
  });
};

const threshold = (form) => {
  const curve = JSON.parse(form.dataset.threshold);
  const price = (name) => Math.max(0, Number(form[name].value) || 0);
  const cost = (kind, i) => price("miss") * curve["missed" + kind][i] + price("alarm") * curve["called" + kind][i];
  const between = (what, i) => `${percent(curve[what + "_low"][i])} – ${percent(curve[what + "_high"][i])}`;
  const show = () => {
    const i = Math.round(100 * form.threshold.value);
    const certified = curve.at.map((_, k) => cost("_high", k));
    write(form.parentElement, {
      threshold: curve.at[i].toFixed(2), missed: percent(curve.missed[i]), missed_band: between("missed", i),
      called: percent(curve.called[i]), called_band: between("called", i), cost: cost("", i).toPrecision(4),
      cost_band: `${cost("_low", i).toPrecision(4)} – ${certified[i].toPrecision(4)}`,
      best: curve.at[certified.indexOf(Math.min(...certified))].toFixed(2),
    });
    const mark = form.parentElement.querySelector(".mark");
    for (const end of ["x1", "x2"]) mark?.setAttribute(end, 52 + curve.at[i] * 396);
  };
  const redraw = settled((newest) => refill(document.getElementById("threshold-figure"), query(form), newest));
  form.threshold.addEventListener("input", show);
  for (const name of ["miss", "alarm"]) form[name].addEventListener("input", () => { show(); redraw(); });
};

const coverage = (form) => {
  const lines = JSON.parse(form.dataset.coverage);
  form.coverage.addEventListener("input", () => {
    const line = lines[form.coverage.value];
    write(form.parentElement, { coverage: `${+(100 * line.coverage).toPrecision(4)} %`, size: `${+line.size.toPrecision(4)}` });
  });
};

// A form whose answer stands in the part "answer" of its page: it follows what is typed or chosen.
const ask = (form) => {
  const again = settled((newest) => {
    if (!form.checkValidity()) return;
    history.replaceState(null, "", query(form));
    refill(document.getElementById("answer"), query(form), newest);
  });
  form.addEventListener("input", again);
};

const steps = (scene) => {
  const frames = [...scene.querySelectorAll("[data-step]")];
  let at = Number(scene.dataset.steps);
  const go = (to) => {
    frames[at].hidden = true;
    at = Math.max(0, Math.min(frames.length - 1, to));
    frames[at].hidden = false;
    scene.querySelector("input[type=range]").value = at;
  };
  let timer = 0;
  const rest = () => { clearInterval(timer); timer = 0; };
  for (const link of scene.querySelectorAll("[data-go]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); rest(); go(at + Number(link.dataset.go)); });
  }
  const slider = scene.querySelector("input[type=range]");
  slider.addEventListener("input", () => { rest(); go(Number(slider.value)); });
  const play = scene.querySelector("[data-play]");
  for (const part of scene.querySelectorAll("[data-script]")) part.hidden = frames.length < 2;
  play.addEventListener("click", () => {
    if (timer) return rest();
    if (at === frames.length - 1) go(0);
    timer = setInterval(() => { go(at + 1); if (at === frames.length - 1) rest(); }, 700);
  });
};

const drop = (place) => {
  place.addEventListener("dragover", (event) => { event.preventDefault(); place.classList.add("over"); });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    place.querySelector("input[type=file]").files = event.dataTransfer.files;
    place.requestSubmit();
  });
};

// What will be learnt stands beside the button, as it is chosen in the table of columns.
const table = (form) => {
  const plan = form.querySelector("[data-plan]"), title = form.querySelector("[data-target]");
  const used = Number(plan.dataset.used);
  form.addEventListener("change", () => {
    const target = form.querySelector("input[name=target]:checked")?.value ?? "";
    const kinds = [...form.querySelectorAll("select[name^=kind]")];
    const out = kinds.filter((kind) => kind.value === "out" && kind.closest("tr").querySelector("input[name=target]").value !== target);
    const back = form.querySelectorAll("input[name=back]:checked").length;
    const fill = (text) => text.replace("{target}", () => target).replace("{n}", used - out.length + back);
    plan.textContent = fill(plan.dataset.plan);
    title.textContent = fill(title.dataset.target);
  });
};

// Whoever sends a form that takes a while sees that something happens, and cannot send it twice by impatience.
const send = (form) => {
  form.addEventListener("submit", () => {
    form.setAttribute("aria-busy", "true");
    for (const button of form.querySelectorAll("button")) setTimeout(() => { button.disabled = true; }, 0);
  });
};

const BINDERS = {
  "[data-wait]": (place) => refill(place, location.pathname + location.search),
  "[data-live]": follow, "[data-threshold]": threshold, "[data-coverage]": coverage, "[data-ask]": ask,
  "[data-steps]": steps, "[data-drop]": drop, "[data-table]": table, "form[method=post]": send,
};
const bind = (root) => {
  for (const [what, how] of Object.entries(BINDERS)) {
    if (root.matches?.(what)) how(root);
    for (const place of root.querySelectorAll(what)) how(place);
  }
};
bind(document);
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
