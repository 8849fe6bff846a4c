// Live progress, sliders and the play button. Every page works without this file.

for (const place of document.querySelectorAll("[data-live]")) {
  if (place.dataset.status !== "running") continue;
  const source = new EventSource(`${place.dataset.live}/events`);
  let waiting = false;
  const fetchNow = async () => {
    if (waiting) return;
    waiting = true;
    const answer = await fetch(`${place.dataset.live}/live`);
    if (answer.ok) place.innerHTML = await answer.text(); // our own template, escaped on the server
    waiting = false;
  };
  source.onmessage = fetchNow;
  source.addEventListener("end", async () => {
    source.close();
    waiting = false;
    await fetchNow();
    document.querySelector("[data-stop]")?.remove();
    place.querySelector("[role=status]")?.focus();
  });
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const write = (root, values) => {
  for (const [name, text] of Object.entries(values)) {
    for (const place of root.querySelectorAll(`[data-out=${name}]`)) place.textContent = text;
  }
};

for (const form of document.querySelectorAll("[data-threshold]")) {
  const curve = JSON.parse(form.dataset.threshold);
  const cost = (missed, alarms) => form.miss.value * curve.share * missed + form.alarm.value * (1 - curve.share) * alarms;
  const most = (share) => Math.min(1, share + curve.width);
  const mark = form.parentElement.querySelector(".mark");
  const show = () => {
    const i = Math.round(100 * form.threshold.value);
    const [missed, alarms] = [curve.missed[i], curve.alarms[i]];
    const certified = curve.at.map((_, k) => cost(most(curve.missed[k]), most(curve.alarms[k])));
    write(form.parentElement, {
      threshold: curve.at[i].toFixed(2), missed: percent(missed), missed_most: percent(most(missed)),
      alarms: percent(alarms), alarms_most: percent(most(alarms)), cost: cost(missed, alarms).toPrecision(4),
      cost_most: certified[i].toPrecision(4), best: curve.at[certified.indexOf(Math.min(...certified))].toFixed(2),
    });
    for (const end of ["x1", "x2"]) mark?.setAttribute(end, 52 + curve.at[i] * 396);
  };
  form.threshold.addEventListener("input", show);
}

for (const form of document.querySelectorAll("[data-coverage]")) {
  const lines = JSON.parse(form.dataset.coverage);
  form.coverage.addEventListener("input", () => {
    const line = lines[form.coverage.value];
    write(form.parentElement, { coverage: `${+(100 * line.coverage).toPrecision(4)} %`, size: `${+line.size.toPrecision(4)}` });
  });
}

for (const scene of document.querySelectorAll("[data-steps]")) {
  const frames = [...scene.querySelectorAll("[data-step]")];
  let at = Number(scene.dataset.steps);
  const go = (to) => {
    frames[at].hidden = true;
    at = Math.max(0, Math.min(frames.length - 1, to));
    frames[at].hidden = false;
  };
  for (const link of scene.querySelectorAll("[data-go]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); go(at + Number(link.dataset.go)); });
  }
  const play = scene.querySelector("[data-play]");
  let timer = 0;
  play.hidden = frames.length < 2;
  play.addEventListener("click", () => {
    clearInterval(timer);
    if (at === frames.length - 1) go(0);
    timer = setInterval(() => { go(at + 1); if (at === frames.length - 1) clearInterval(timer); }, 700);
  });
}

for (const place of document.querySelectorAll("[data-drop]")) {
  place.addEventListener("dragover", (event) => { event.preventDefault(); place.classList.add("over"); });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    place.querySelector("input[type=file]").files = event.dataTransfer.files;
    place.requestSubmit();
  });
}
