// Panel of tmkit in a page of viser: poses, time line, facts, names.
//
// The script has no dependencies and makes no request. The client of viser exposes its state as
// window.__viserMutable and window.__viserSceneTree. A document (see page.py) has the frames of a
// scene with parents and local poses, and optionally a time line. The script computes the world
// poses and writes them to the nodes, so each time costs the same, whatever was shown before.
window.tmkit = window.tmkit || (() => {
  "use strict";
  const UNIT = 1e-6, SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
  const KINDS = {transit: "#9aa5b1", approach: "#74b9ff", grasp: "#e17055", lift: "#fdcb6e", transfer: "#00b894",
    lower: "#fab1a0", release: "#e84393", retreat: "#a29bfe", pour: "#0984e3", operate: "#b8860b", push: "#6c5ce7",
    line: "#00cec9"}, OTHER = "#999";
  const STYLE = `
    :root { --tmkit-bar: 0px }
    #root { height: calc(100% - var(--tmkit-bar)) !important }
    .tmkit { font: 13px/1.4 system-ui, sans-serif; color: #22303c; box-sizing: border-box; position: fixed; z-index: 50 }
    .tmkit * { box-sizing: border-box }
    .tmkit button { font: inherit; color: inherit; border: 1px solid #cbd5e0; background: #fff; border-radius: 5px;
      padding: 2px 8px; cursor: pointer; min-width: 30px; height: 26px; white-space: nowrap; flex: none }
    .tmkit button:hover { background: #edf2f7 } .tmkit button.on { background: #2b6cb0; color: #fff; border-color: #2b6cb0 }
    #tmkit-bar { left: 0; right: 0; bottom: 0; padding: 6px 12px; background: #fff;
      border-top: 1px solid #d5dde5; display: flex; flex-direction: column; gap: 5px }
    #tmkit-bar .row { display: flex; gap: 6px; align-items: center; min-height: 26px }
    #tmkit-caption { flex: 1; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; padding-left: 6px }
    #tmkit-caption b { font-weight: 600 } #tmkit-caption i { color: #718096; font-style: normal }
    #tmkit-clock { font-variant-numeric: tabular-nums; color: #4a5568; white-space: nowrap }
    #tmkit-track { position: relative; height: 46px; cursor: pointer; touch-action: none; user-select: none;
      border-radius: 4px; overflow: hidden; background: #edf2f7 }
    #tmkit-track .action { position: absolute; top: 0; height: 28px; padding: 4px 6px; overflow: hidden;
      white-space: nowrap; text-overflow: ellipsis; border-right: 2px solid #fff; background: #dbe7f3 }
    #tmkit-track .action.now { background: #2b6cb0; color: #fff }
    #tmkit-track .segment { position: absolute; top: 30px; height: 16px; border-right: 1px solid #fff }
    #tmkit-hand { position: absolute; top: 0; bottom: 0; width: 2px; background: #c53030; pointer-events: none }
    #tmkit-legend { display: flex; flex-wrap: wrap; gap: 2px 14px; color: #4a5568; font-size: 12px }
    #tmkit-legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px }
    #tmkit-facts { left: 12px; top: 12px; width: 270px; max-height: calc(100% - var(--tmkit-bar) - 24px); display: flex;
      flex-direction: column; background: rgba(255,255,255,.93); border: 1px solid #d5dde5; border-radius: 8px;
      box-shadow: 0 2px 10px rgba(0,0,0,.08) }
    #tmkit-facts h4 { margin: 0; padding: 7px 10px; font-size: 13px; cursor: pointer; display: flex }
    #tmkit-facts h4 span { flex: 1 } #tmkit-facts.closed { width: auto } #tmkit-facts.closed > div { display: none }
    #tmkit-facts > div { overflow: auto; padding: 0 10px 8px } #tmkit-facts h5 { margin: 6px 0 2px; color: #718096;
      font-size: 11px; font-weight: 600; text-transform: uppercase; letter-spacing: .04em }
    #tmkit-facts p { margin: 0; font: 12px/1.5 ui-monospace, monospace; overflow-wrap: anywhere }
    #tmkit-facts .added { color: #2f855a } #tmkit-facts .removed { color: #c53030; text-decoration: line-through }
    #tmkit-facts summary { font: 12px/1.5 ui-monospace, monospace; cursor: pointer; color: #4a5568 }
    #tmkit-over { left: 0; top: 0; pointer-events: none; z-index: 40 }
    .mantine-Notifications-root { left: 300px !important }
    @media (max-width: 640px) { #tmkit-clock, #tmkit-caption i { display: none } #tmkit-bar .row { flex-wrap: wrap }
      #tmkit-caption { flex-basis: 100%; order: -1 } }`;

  let model = null, n = 0, parents, local, order, P, Q, rest, restParents, line = null, isFollowing = false;
  let time = 0, playing = false, loop = true, speed = 1, eventsDone = 0, shown = {}, reportedSample = -1, lastBuffers = [], lastDocument = null, messages = 0;
  let picked = -1, hovered = -1, hoverPosition = null, names = 0, axes = false, collision = false, overlay = null, dirty = true;
  const viser = () => window.__viserMutable, tree = () => window.__viserSceneTree;
  const make = (tag, attributes = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };
  const byId = (id) => document.getElementById(id);

  // --- poses: x, y, z, qx, qy, qz, qw

  function rotate(q, offset, x, y, z, result) {
    const a = q[offset], b = q[offset + 1], c = q[offset + 2], w = q[offset + 3];
    const u = 2 * (b * z - c * y), v = 2 * (c * x - a * z), s = 2 * (a * y - b * x);
    result[0] = x + w * u + b * s - c * v;
    result[1] = y + w * v + c * u - a * s;
    result[2] = z + w * s + a * v - b * u;
  }
  const scratch = [0, 0, 0];
  function compose(i, p) {  // world pose of frame i whose parent is p
    const o = 7 * i, l = local;
    if (p < 0) {
      for (let k = 0; k < 3; k++) P[3 * i + k] = l[o + k];
      for (let k = 0; k < 4; k++) Q[4 * i + k] = l[o + 3 + k];
      return;
    }
    const a = 4 * p, x = Q[a], y = Q[a + 1], z = Q[a + 2], w = Q[a + 3];
    rotate(Q, a, l[o], l[o + 1], l[o + 2], scratch);
    for (let k = 0; k < 3; k++) P[3 * i + k] = P[3 * p + k] + scratch[k];
    const X = l[o + 3], Y = l[o + 4], Z = l[o + 5], W = l[o + 6], b = 4 * i;
    Q[b] = w * X + x * W + y * Z - z * Y; Q[b + 1] = w * Y - x * Z + y * W + z * X;
    Q[b + 2] = w * Z + x * Y - y * X + z * W; Q[b + 3] = w * W - x * X - y * Y - z * Z;
  }
  function sortFrames() {  // parents before children
    const depth = new Int32Array(n);
    for (let i = 0; i < n; i++) for (let p = parents[i]; p >= 0; p = parents[p]) depth[i]++;
    order = Array.from({length: n}, (_, i) => i).sort((a, b) => depth[a] - depth[b]);
  }
  function computeWorldPoses() { for (const i of order) compose(i, parents[i]); }

  function updateNodes() {  // write changed poses to the nodes
    const data = viser().nodePoseData;
    for (const group of collision ? ["/bodies/", "/collision/"] : ["/bodies/"]) {
      for (const [i, name] of model.bodies) {
        const key = group + name, a = 3 * i, b = 4 * i, old = data[key];
        if (old && old.position[0] === P[a] && old.position[1] === P[a + 1] && old.position[2] === P[a + 2] &&
            old.wxyz[0] === Q[b + 3] && old.wxyz[1] === Q[b] && old.wxyz[2] === Q[b + 1] && old.wxyz[3] === Q[b + 2]) continue;
        const entry = old || (data[key] = {});
        entry.position = [P[a], P[a + 1], P[a + 2]];
        entry.wxyz = [Q[b + 3], Q[b], Q[b + 1], Q[b + 2]];
        if (entry.poseUpdateState !== "waitForMakeObject") entry.poseUpdateState = "needsUpdate";
      }
    }
    if (axes) {
      const positions = Float32Array.from(P), wxyzs = new Float32Array(4 * n);
      for (let i = 0; i < n; i++) for (let k = 0; k < 4; k++) wxyzs[4 * i + (k + 1) % 4] = Q[4 * i + k];
      send("SceneNodeUpdateMessage", "/frames", {updates: {batched_positions: positions, batched_wxyzs: wxyzs}});
    }
    dirty = true;
    viser().requestRender();
  }
  function send(type, name, fields) {
    viser().messageQueue.push({type, name, owner: "", ...fields});
    viser().requestRender();
  }
  function report(text) {  // to Python, if there is a server
    if (model.inbox) viser().sendMessage({type: "GuiUpdateMessage", uuid: model.inbox, updates: {value: `${++messages} ${text}`}});
  }

  // --- the time line

  function readLine(document) {
    let sum = 0;
    const times = document.times.map((step) => (sum += step) * UNIT), m = times.length, tracks = [];
    for (const [frame, differences] of Object.entries(document.tracks)) {
      const values = new Float64Array(7 * m);
      for (let k = 0; k < 7; k++) for (let i = 0, v = 0; i < m; i++) values[7 * i + k] = (v += differences[k * m + i]) * UNIT;
      tracks.push([Number(frame), values]);
    }
    const states = [];
    if (document.facts) {
      let state = new Set(document.facts);
      states.push(state);
      for (const step of document.steps) {
        state = new Set(state);
        step.removed.forEach((fact) => state.delete(fact));
        step.added.forEach((fact) => state.add(fact));
        states.push(state);
      }
    }
    return {...document, times, tracks, states, duration: times[m - 1]};
  }
  function sampleAt(t) {
    let low = 0, high = line.times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (line.times[middle] <= t + 2 * UNIT) low = middle; else high = middle - 1;
    }
    return low;
  }
  function show(t) {
    time = Math.min(Math.max(t, 0), line.duration);
    const i = sampleAt(time), j = Math.min(i + 1, line.times.length - 1);
    const f = j > i ? Math.max(0, (time - line.times[i]) / (line.times[j] - line.times[i] || 1)) : 0;
    let resort = false;
    if (eventsDone > 0 && line.events[eventsDone - 1][0] > i) {
      eventsDone = 0; local.set(rest); parents.set(restParents); resort = true;
    }
    for (; eventsDone < line.events.length && line.events[eventsDone][0] <= i; eventsDone++) {
      const [, frame, parent, ...pose] = line.events[eventsDone];
      parents[frame] = parent; resort = true;
      for (let k = 0; k < 7; k++) local[7 * frame + k] = pose[k] * UNIT;
    }
    if (resort) sortFrames();
    for (const [frame, values] of line.tracks) {
      const o = 7 * frame;
      let norm = 0;
      for (let k = 0; k < 7; k++) {
        const v = values[7 * i + k] + f * (values[7 * j + k] - values[7 * i + k]);
        local[o + k] = v;
        if (k > 2) norm += v * v;
      }
      norm = Math.sqrt(norm);
      for (let k = 3; k < 7; k++) local[o + k] /= norm;
    }
    computeWorldPoses();
    updateNodes();
    describe(i);
  }
  function describe(i) {
    const done = line.steps.filter((step) => step.end <= i).length, index = Math.min(done, line.steps.length - 1);
    const segment = line.segments.find((s) => i >= s[3] && i < s[4]);
    byId("tmkit-hand").style.left = `calc(${100 * time / line.duration}% - 1px)`;
    byId("tmkit-clock").textContent = `${time.toFixed(1)} / ${line.duration.toFixed(1)} s`;
    const key = `${done} ${segment}`;
    if (shown.key !== key) {
      byId("tmkit-facts")?.style.setProperty("opacity", 1);
      const step = line.steps[index], caption = byId("tmkit-caption");
      caption.replaceChildren();
      if (!step) caption.append("The goal holds at the start.");
      else if (done === line.steps.length) caption.append(make("b", {textContent: "Goal reached: "}), line.goal);
      else caption.append(make("b", {textContent: `${index + 1}/${line.steps.length} ${step.action} `}),
        segment ? `${segment[1]}${segment[2] ? " " + segment[2] : ""} ` : "", make("i", {textContent: step.choice}));
      caption.title = caption.textContent;
      document.querySelectorAll("#tmkit-track .action").forEach((e, k) => e.classList.toggle("now", k === index && done <= index));
    }
    if (shown.done !== done && line.states.length) facts(line.states[done], done ? line.steps[done - 1] : null);
    shown = {key, done};
    if (model.inbox && i !== reportedSample && !playing) { reportedSample = i; report(`sample ${i}`); }
  }
  function facts(state, step) {
    const body = byId("tmkit-facts").lastElementChild, groups = new Map(), added = new Set(step ? step.added : []);
    const paragraph = (text, kind = "") => make("p", {textContent: text, className: kind});
    body.replaceChildren();
    if (step) {
      body.append(make("h5", {textContent: `changed by ${step.action}`}));
      step.added.forEach((fact) => body.append(paragraph(fact, "added")));
      step.removed.forEach((fact) => body.append(paragraph(fact, "removed")));
    }
    body.append(make("h5", {textContent: step ? "unchanged" : "hold at the start"}));
    for (const fact of [...state].filter((fact) => !added.has(fact)).sort()) {
      const predicate = fact.slice(1).split(/[\s)]/, 1)[0];
      groups.set(predicate, [...(groups.get(predicate) || []), fact]);
    }
    for (const [predicate, all] of [...groups].sort((a, b) => a[1].length - b[1].length)) {
      const rows = all.map((fact) => paragraph(fact));
      body.append(...(all.length <= 8 ? rows : [make("details", {}, make("summary", {textContent: `${predicate}: ${all.length} facts`}), ...rows)]));
    }
  }
  function play(on) {
    playing = on;
    if (on && time >= line.duration - 1e-6) time = 0;
    byId("tmkit-play").textContent = on ? "❚❚" : "▶";
    if (on) requestAnimationFrame((now) => tick(now, now)); else if (line) describe(sampleAt(time));
  }
  function tick(now, before) {
    if (!playing) return;
    let t = time + speed * Math.min(0.25, (now - before) / 1000);
    if (t >= line.duration) {
      if (loop) t = t >= line.duration + 1.0 * speed ? 0 : t; else { show(line.duration); return play(false); }
      if (t > line.duration) { show(line.duration); time = t; } else show(t);
    } else show(t);
    requestAnimationFrame((after) => tick(after, now));
  }
  function seek(t) { if (playing) play(false); show(t); }
  function jump(direction) {  // to the previous or next boundary of actions
    const ends = [0, ...line.steps.map((step) => line.times[step.end])], here = Math.min(time, line.duration);
    const next = direction > 0 ? ends.find((t) => t > here + 1e-3) : ends.reverse().find((t) => t < here - 1e-3);
    seek(next === undefined ? (direction > 0 ? line.duration : 0) : next);
  }

  // --- the panels

  function button(text, title, action, id = "") {
    const element = make("button", {textContent: text, title, id, type: "button"});
    element.onclick = () => { action(element); element.blur(); };
    return element;
  }
  function switches() {
    const toggle = (text, title, change) => button(text, title, (b) => b.classList.toggle("on", change()));
    return [
      toggle("Names", "names of bodies, then of all frames", () => { names = (names + 1) % 3; dirty = true; return names > 0; }),
      toggle("Frames", "axes of all frames", () => {
        axes = !axes;
        send("SetSceneNodeVisibilityMessage", "/frames", {visible: axes});
        updateNodes();
        return axes;
      }),
      toggle("Collision", "the pieces that collide", () => {
        collision = !collision;
        send("SetSceneNodeVisibilityMessage", "/collision", {visible: collision});
        updateNodes();
        return collision;
      }),
    ];
  }
  function buildPanels() {
    document.querySelectorAll(".tmkit:not(canvas)").forEach((element) => element.remove());
    if (!byId("tmkit-style")) document.head.append(make("style", {id: "tmkit-style", textContent: STYLE}));
    const caption = make("div", {id: "tmkit-caption"}), bar = make("div", {id: "tmkit-bar", className: "tmkit"});
    if (line) {
      const speeds = button("1×", "speed", (b) => { speed = SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length]; b.textContent = `${speed}×`; }, "tmkit-speed");
      const looping = button("⟳", "repeat", (b) => { loop = !loop; b.classList.toggle("on", loop); }, "tmkit-loop");
      looping.classList.add("on");
      bar.append(make("div", {className: "row"}, button("|◀", "previous action (←)", () => jump(-1), "tmkit-previous"),
        button("▶", "play or pause (space)", () => play(!playing), "tmkit-play"),
        button("▶|", "next action (→)", () => jump(1), "tmkit-next"), speeds, looping, caption,
        make("span", {id: "tmkit-clock"}), ...switches()), track(), legend());
    } else {
      caption.textContent = model.caption || "";
      bar.append(make("div", {className: "row"}, caption, ...switches()));
    }
    document.body.append(bar);
    document.documentElement.style.setProperty("--tmkit-bar", `${bar.offsetHeight}px`);
    if (line && line.states.length) {
      const head = make("h4", {}, make("span", {textContent: "Facts"}), "▾"), panel = make("div", {id: "tmkit-facts", className: "tmkit"}, head, make("div"));
      head.onclick = () => panel.classList.toggle("closed");
      panel.classList.toggle("closed", window.innerWidth < 800);
      document.body.append(panel);
    }
    if (!overlay) {
      overlay = make("canvas", {id: "tmkit-over", className: "tmkit"});
      document.body.append(overlay);
      listen();
    }
  }
  function track() {
    const element = make("div", {id: "tmkit-track"}), percent = (t) => `${100 * t / line.duration}%`;
    let begin = 0;
    for (const step of line.steps) {
      const end = line.times[step.end], block = make("div", {className: "action", textContent: step.action, title: `${step.action}: ${step.choice}`});
      block.style.left = percent(begin); block.style.width = percent(end - begin);
      element.append(block);
      begin = end;
    }
    for (const [, kind, held, first, last] of line.segments) {
      const block = make("div", {className: "segment", title: held ? `${kind} ${held}` : kind});
      block.style.left = percent(line.times[first]); block.style.width = percent(line.times[last] - line.times[first]);
      block.style.background = KINDS[kind] || OTHER;
      element.append(block);
    }
    element.append(make("div", {id: "tmkit-hand"}));
    const to = (event) => { const box = element.getBoundingClientRect(); seek((event.clientX - box.left) / box.width * line.duration); };
    element.onpointerdown = (event) => { element.setPointerCapture(event.pointerId); to(event); };
    element.onpointermove = (event) => { if (element.hasPointerCapture(event.pointerId)) to(event); };
    return element;
  }

  function legend() {  // the colours of the kinds of segments that occur
    const occurring = new Set(line.segments.map((segment) => segment[1]));
    const entry = (kind) => make("span", {}, Object.assign(make("i"), {style: `background:${KINDS[kind] || OTHER}`}), kind);
    return make("div", {id: "tmkit-legend"}, ...[...new Set([...Object.keys(KINDS), ...occurring])].filter((kind) => occurring.has(kind)).map(entry));
  }

  // --- names, hovering, picking

  function view() {  // projection of points to pixels, and rays through pixels
    const camera = viser()?.camera, canvas = viser()?.canvas, root = viser()?.nodeRefFromName["/bodies"];
    if (!camera || !canvas || !root) return null;
    const box = canvas.getBoundingClientRect(), A = root.matrixWorld.elements, V = camera.matrixWorldInverse.elements, J = camera.projectionMatrix.elements;
    const apply = (E, v) => [0, 1, 2, 3].map((r) => E[r] * v[0] + E[4 + r] * v[1] + E[8 + r] * v[2] + E[12 + r] * v[3]);
    return {
      box,
      pixel: (x, y, z) => {
        const c = apply(J, apply(V, apply(A, [x, y, z, 1])));
        return c[3] <= 0 ? null : [box.left + (c[0] / c[3] + 1) / 2 * box.width, box.top + (1 - c[1] / c[3]) / 2 * box.height, c[3]];
      },
      ray: (px, py) => {
        const unproject = (depth) => {
          const v = apply(camera.projectionMatrixInverse.elements, [2 * (px - box.left) / box.width - 1, 1 - 2 * (py - box.top) / box.height, depth, 1]);
          const w = apply(camera.matrixWorld.elements, [v[0] / v[3], v[1] / v[3], v[2] / v[3], 1]);
          const d = [w[0] - A[12], w[1] - A[13], w[2] - A[14]];  // the root has no scale
          return [0, 1, 2].map((r) => A[4 * r] * d[0] + A[4 * r + 1] * d[1] + A[4 * r + 2] * d[2]);
        };
        const origin = unproject(-1), beyond = unproject(0.9);
        return [origin, origin.map((v, k) => beyond[k] - v)];
      },
    };
  }
  function inBox(box, point) {  // return a point of the scene in the axes of a box
    const i = box[0], q = [-Q[4 * i], -Q[4 * i + 1], -Q[4 * i + 2], Q[4 * i + 3]], p = [0, 0, 0];
    rotate(q, 0, point[0] - P[3 * i], point[1] - P[3 * i + 1], point[2] - P[3 * i + 2], p);
    rotate([-box[4], -box[5], -box[6], box[7]], 0, p[0] - box[1], p[1] - box[2], p[2] - box[3], p);
    return p;
  }
  function frameAtPixel(px, py) {
    const v = view();
    if (!v) return -1;
    const [origin, direction] = v.ray(px, py), beyond = origin.map((x, k) => x + direction[k]);
    let best = Infinity, frame = -1;
    for (const box of model.boxes) {
      const a = inBox(box, origin), b = inBox(box, beyond);
      let low = 0, high = Infinity;
      for (let k = 0; k < 3; k++) {
        const d = b[k] - a[k], s = (box[8 + k] - a[k]) / d, e = (box[11 + k] - a[k]) / d;
        low = Math.max(low, Math.min(s, e)); high = Math.min(high, Math.max(s, e));
      }
      if (low <= high && low < best) { best = low; frame = box[0]; }
    }
    return frame;
  }
  function outline(context, v, frame, color) {
    context.strokeStyle = color; context.lineWidth = 1.5;
    for (const box of model.boxes.filter((b) => b[0] === frame)) {
      const corners = [];
      for (let c = 0; c < 8; c++) {
        const p = [0, 1, 2].map((k) => box[(c >> k & 1 ? 11 : 8) + k]), r = [0, 0, 0];
        rotate(box, 4, p[0], p[1], p[2], r);
        rotate(Q, 4 * frame, r[0] + box[1], r[1] + box[2], r[2] + box[3], r);
        corners.push(v.pixel(r[0] + P[3 * frame], r[1] + P[3 * frame + 1], r[2] + P[3 * frame + 2]));
      }
      if (corners.some((c) => !c)) continue;
      context.beginPath();
      for (let c = 0; c < 8; c++) for (let k = 0; k < 3; k++) if (!(c >> k & 1)) {
        context.moveTo(corners[c][0], corners[c][1]); context.lineTo(corners[c | 1 << k][0], corners[c | 1 << k][1]);
      }
      context.stroke();
    }
  }
  function label(context, text, x, y, color) {
    const width = context.measureText(text).width;
    context.fillStyle = "rgba(255,255,255,.85)"; context.fillRect(x - 3, y - 11, width + 6, 15);
    context.fillStyle = color; context.fillText(text, x, y);
  }
  let lastView = "";
  function draw() {
    requestAnimationFrame(draw);
    const v = model && api.ready && view();
    if (!v) return;
    const key = `${viser().camera.matrixWorld.elements} ${v.box.width} ${v.box.height} ${v.box.left}`;
    if (!dirty && key === lastView) return;
    dirty = false; lastView = key;
    const scale = window.devicePixelRatio || 1, width = window.innerWidth, height = window.innerHeight;
    if (overlay.width !== width * scale || overlay.height !== height * scale) {
      overlay.width = width * scale; overlay.height = height * scale;
      overlay.style.width = `${width}px`; overlay.style.height = `${height}px`;
    }
    const context = overlay.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.save();
    context.beginPath(); context.rect(v.box.left, v.box.top, v.box.width, v.box.height); context.clip();
    context.font = "12px system-ui, sans-serif";
    if (names) {
      const bodies = new Set(model.bodies.map(([i]) => i)), taken = [];
      for (let i = 0; i < n; i++) {
        const pixel = (names === 2 || bodies.has(i)) && v.pixel(P[3 * i], P[3 * i + 1], P[3 * i + 2]);
        if (!pixel || taken.some((t) => Math.abs(t[0] - pixel[0]) < 60 && Math.abs(t[1] - pixel[1]) < 13)) continue;
        taken.push(pixel);
        label(context, model.frames[i], pixel[0], pixel[1], "#22303c");
      }
    }
    if (picked >= 0) {
      outline(context, v, picked, "#dd6b20");
      const pixel = v.pixel(P[3 * picked], P[3 * picked + 1], P[3 * picked + 2]);
      if (pixel) label(context, model.frames[picked], pixel[0] + 8, pixel[1] - 8, "#c05621");
    }
    if (hovered >= 0 && hoverPosition) {
      if (hovered !== picked) outline(context, v, hovered, "#4a5568");
      label(context, model.frames[hovered], hoverPosition[0] + 14, hoverPosition[1] - 6, "#1a202c");
    }
    context.restore();
  }
  function pick(frame) {
    picked = frame; dirty = true;
    document.querySelectorAll("[data-tmkit-frame]").forEach((e) => {
      const is = frame >= 0 && e.dataset.tmkitFrame === model.frames[frame];
      e.style.background = is ? "#fbd38d" : "";
      if (is) e.scrollIntoView({block: "nearest"});
    });
  }
  function listen() {
    let down = null;
    document.addEventListener("pointermove", (event) => {
      const inside = model && event.target === viser()?.canvas && event.buttons === 0, frame = inside ? frameAtPixel(event.clientX, event.clientY) : -1;
      if (frame >= 0 || hovered >= 0) dirty = true;
      hovered = frame; hoverPosition = [event.clientX, event.clientY];
    });
    document.addEventListener("pointerdown", (event) => { down = event.target === viser()?.canvas ? [event.clientX, event.clientY] : null; }, true);
    document.addEventListener("pointerup", (event) => {
      if (!down || Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4) return;
      pick(frameAtPixel(event.clientX, event.clientY));
      if (picked >= 0) report(`pick ${model.frames[picked]}`);
    }, true);
    document.addEventListener("click", (event) => {
      const row = event.target.closest?.("[data-tmkit-frame]"), action = event.target.closest?.("[data-tmkit-tell]");
      if (row) { pick(model.frames.indexOf(row.dataset.tmkitFrame)); report(`pick ${row.dataset.tmkitFrame}`); }
      if (action) report(action.dataset.tmkitTell);
    });
    window.addEventListener("keydown", (event) => {
      if (!line || /INPUT|TEXTAREA|SELECT/.test(document.activeElement?.tagName)) return;
      if (event.code === "Space") play(!playing);
      else if (event.code === "ArrowRight") jump(1);
      else if (event.code === "ArrowLeft") jump(-1);
      else return;
      event.preventDefault(); event.stopImmediatePropagation();
    }, true);
    requestAnimationFrame(draw);
  }

  // --- start

  function start(document) {
    model = document; api.ready = false;
    n = model.frames.length;
    rest = Float64Array.from(model.poses.flat(), (v) => v * UNIT);
    restParents = Int32Array.from(model.parents);
    local = rest.slice(); parents = restParents.slice();
    P = new Float64Array(3 * n); Q = new Float64Array(4 * n);
    playing = false; time = 0; eventsDone = 0; shown = {}; reportedSample = -1; picked = hovered = -1; names = 0; axes = collision = false;
    line = model.timeline ? readLine(model.timeline) : null;
    buildPanels();
    sortFrames(); computeWorldPoses();
    whenReady(() => {
      viser().canvas.style.background = "linear-gradient(#dfe7ee, #fafbfc 80%)";
      if (line) show(0); else updateNodes();
      if (line && model.autoplay) play(true);
      closeNote(); setTimeout(closeNote, 3000);
      api.ready = true;
    });
  }
  function whenReady(then) {  // if the nodes exist and all messages are processed
    const state = tree()?.getState();
    if (state && state["/bodies"] && viser().messageQueue.length === 0 && viser().nodeRefFromName["/bodies"]) then();
    else setTimeout(whenReady, 20, then);
  }
  function closeNote() {  // viser's note on software rendering covers the facts
    document.querySelectorAll(".mantine-Notification-root").forEach((e) => {
      if (e.textContent.includes("Software WebGL")) e.querySelector("button")?.click();
    });
  }
  function follow() {  // documents and world poses of a server, as updates of the node /poses
    const asFloats = (array) => array instanceof Float32Array ? array : new Float32Array(array.buffer, array.byteOffset, array.byteLength / 4);
    const check = () => {
      const props = tree().getState()["/poses"]?.message?.props;
      if (!props) return;
      if (props.document && props.document !== lastDocument) {
        lastDocument = props.document;
        lastBuffers = [props.batched_positions, props.batched_wxyzs];
        start(JSON.parse(lastDocument));
        return;
      }
      const buffers = [props.batched_positions, props.batched_wxyzs];
      if (!api.ready || buffers.every((buffer, k) => buffer === lastBuffers[k])) return;
      lastBuffers = buffers;
      const positions = asFloats(buffers[0]), wxyzs = asFloats(buffers[1]);
      if (positions.length !== 3 * n) return;
      if (playing) play(false);
      P.set(positions);
      for (let i = 0; i < n; i++) for (let k = 0; k < 4; k++) Q[4 * i + (k + 3) % 4] = wxyzs[4 * i + k];
      api.updates++;
      if (line) {
        shown = {};
        byId("tmkit-caption").textContent = "Not a state of the time line; scrub to return to the plan.";
        byId("tmkit-facts")?.style.setProperty("opacity", 0.3);
      }
      updateNodes();
    };
    const begin = () => {
      if (!tree()?.getState()["/poses"]) return setTimeout(begin, 50);
      tree().subscribe(check);
      setInterval(check, 200);  // a document may arrive before its nodes
      check();
    };
    if (!isFollowing) { isFollowing = true; begin(); }
  }
  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    start(JSON.parse(await new Response(stream).text()));
  }
  const api = {
    start, unpack, follow, seek, play, jump, pick: (name) => pick(model.frames.indexOf(name)), ready: false, updates: 0,
    get time() { return time; }, get duration() { return line ? line.duration : 0; }, get playing() { return playing; },
    get hovered() { return model.frames[hovered]; }, get picked() { return model.frames[picked]; },
    pixel: (name) => { const i = model.frames.indexOf(name); return view().pixel(P[3 * i], P[3 * i + 1], P[3 * i + 2]).slice(0, 2); },
    pose: (name) => {  // of a frame: x, y, z, qx, qy, qz, qw
      const i = model.frames.indexOf(name);
      return [...P.slice(3 * i, 3 * i + 3), ...Q.slice(4 * i, 4 * i + 4)];
    },
  };
  return api;
})();
