"use strict";
// The page is whole without this. With it, it stays up to date, acts, and listens to keys.
(() => {
  const one = (what, within = document) => within.querySelector(what);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const csrf = one('meta[name="segno-csrf"]')?.content ?? "";
  const line = one("#line");
  // More than this at once, and what is far away is taken out: it comes back when somebody scrolls there.
  const MOST = 600;

  let hush = 0;
  const say = (text, bad = false) => {
    const said = one("#said");
    said.className = bad ? "bad" : "";
    said.textContent = text;
    clearTimeout(hush);
    hush = setTimeout(() => { said.textContent = ""; }, bad ? 12000 : 5000);
  };

  // What the server sends is made by its own templates, in which every text is escaped; scripts in it would not run anyway.
  const pieces = (html) => new DOMParser().parseFromString(`<body>${html}</body>`, "text/html").body;

  // --- staying up to date
  const lost = (is) => {
    line.textContent = is ? "connection lost, trying again" : "live";
    line.classList.toggle("off", is);
  };

  let source = null;
  let heardAt = 0;
  let watched = 0;
  const quiet = () => { source?.close(); clearInterval(watched); };
  const listen = (address, events) => {
    quiet();
    source = new EventSource(address);
    heardAt = Date.now();
    source.onopen = () => { heardAt = Date.now(); lost(false); };
    source.addEventListener("alive", () => { heardAt = Date.now(); });
    // The server says something every quarter of a minute: silence is a connection that nobody has closed.
    watched = setInterval(() => {
      if (Date.now() - heardAt < 45000) return;
      lost(true);
      listen(typeof events.again === "function" ? events.again() : address, events);
    }, 5000);
    source.onerror = () => {
      lost(true);
      // A browser gives up after some answers; the page does not.
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(() => listen(typeof events.again === "function" ? events.again() : address, events), 2000);
      }
    };
    for (const [name, heard] of Object.entries(events.on)) {
      source.addEventListener(name, (event) => { heardAt = Date.now(); heard(event); });
    }
  };

  const rows = one('[data-live="sessions"]');
  if (rows) {
    let busy = false;
    let again = false;
    const load = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        const answer = await fetch(`/rows${location.search}`, { headers: { Accept: "text/html" } });
        if (answer.status === 401) location.reload();
        if (answer.ok) {
          const typing = rows.contains(document.activeElement) && document.activeElement.matches("input, textarea");
          if (!typing) {
            const held = document.activeElement?.closest?.(".row")?.dataset.id;
            const at = one(".row.at", rows)?.dataset.id;
            rows.replaceChildren(...pieces(await answer.text()).childNodes);
            if (held) one(`.row[data-id="${held}"] .open`, rows)?.focus();
            if (at) one(`.row[data-id="${at}"]`, rows)?.classList.add("at");
          }
        }
      } catch { /* the event source says that the connection is lost */ }
      setTimeout(() => { busy = false; if (again) { again = false; load(); } }, 250);
    };
    let first = true;
    listen("/api/v1/events", { on: { sessions: () => { if (first) first = false; else load(); } } });
  }

  const timeline = one("#timeline");
  if (timeline) {
    const list = one("#moments");
    const session = timeline.dataset.session;
    const place = { after: Number(timeline.dataset.after), until: Number(timeline.dataset.until) };
    let live = timeline.dataset.live === "session";
    let loading = false;
    let unseen = 0;

    const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
    const button = document.createElement("button");
    button.id = "new";
    button.hidden = true;
    button.addEventListener("click", () => { location.href = `/s/${session}#end`; if (live) { toEnd(); } else location.reload(); });
    timeline.append(button);
    const toEnd = () => { unseen = 0; button.hidden = true; scrollTo({ top: document.documentElement.scrollHeight }); };

    const seqs = () => all(":scope > li", list).map((it) => Number(it.dataset.seq));
    const trim = (first) => {
      const items = all(":scope > li", list);
      if (items.length <= MOST) return;
      if (first) {
        // The newest go; they come back by scrolling down.
        for (const it of items.slice(MOST)) it.remove();
        place.until = Math.max(...seqs());
        // An event is shown whole or not at all.
        live = false;
        quiet();
        line.textContent = "";
        later();
      } else {
        const gone = items.slice(0, items.length - MOST);
        const before = document.documentElement.scrollHeight;
        const last = Number(gone.at(-1).dataset.seq);
        for (const it of items) if (Number(it.dataset.seq) <= last) it.remove();
        place.after = last;
        scrollBy(0, document.documentElement.scrollHeight - before);
        earlier();
      }
    };
    const link = (id, words, href, where) => {
      let it = one(`#${id}`);
      if (!it) {
        it = document.createElement("a");
        it.id = id;
        where.replaceChildren(it);
      }
      it.textContent = words;
      it.href = href;
      // One that is in sight already is looked at anew.
      watch.unobserve(it);
      watch.observe(it);
    };
    const [top, bottom] = all(".ends", timeline);
    const earlier = () => link("earlier", "Earlier", `/s/${session}?before=${place.after + 1}`, top);
    const later = () => link("later", "Later", `/s/${session}?after=${place.until}`, bottom);

    const fetchPiece = async (query) => {
      const answer = await fetch(`/s/${session}/moments?${query}`, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const number = (name) => Number(answer.headers.get(`x-segno-${name}`));
      return { after: number("after"), until: number("until"), head: number("head"), body: pieces(await answer.text()) };
    };
    const more = async (up) => {
      if (loading) return;
      loading = true;
      try {
        const piece = await fetchPiece(up ? `before=${place.after + 1}&limit=150` : `after=${place.until}&limit=150`);
        one("#none")?.remove();
        if (up) {
          const before = document.documentElement.scrollHeight;
          list.prepend(...piece.body.children);
          scrollBy(0, document.documentElement.scrollHeight - before);
          place.after = piece.after;
          if (piece.after > 0) earlier();
          else { const words = document.createElement("span"); words.className = "dim"; words.textContent = "the beginning"; top.replaceChildren(words); }
          trim(true);
        } else {
          list.append(...piece.body.children);
          place.until = piece.until;
          if (piece.until < piece.head) later();
          else { bottom.replaceChildren(); live = true; follow(); }
          trim(false);
        }
      } catch {
        lost(true);
        setTimeout(() => { for (const it of all("#earlier, #later")) { watch.unobserve(it); watch.observe(it); } }, 2000);
      }
      loading = false;
    };
    const watch = new IntersectionObserver((seen) => {
      for (const it of seen) if (it.isIntersecting) more(it.target.id === "earlier");
    }, { rootMargin: "400px" });
    for (const it of all("#earlier, #later")) { watch.observe(it); }
    timeline.addEventListener("click", (event) => {
      const it = event.target.closest("#earlier, #later");
      if (it) { event.preventDefault(); more(it.id === "earlier"); }
    });

    const stand = (html) => {
      const held = one("#stand");
      const open = all("details.more[open]", held).length > 0;
      const typing = held.contains(document.activeElement) && document.activeElement.matches("input, textarea");
      // Nobody's words are taken away while they type.
      if (open || typing) return;
      const focus = document.activeElement?.closest?.("form.act")?.dataset.act;
      held.replaceChildren(...pieces(html).childNodes);
      if (focus) one(`form[data-act="${focus}"] button`, held)?.focus();
    };
    const aside = (html) => {
      const held = one("#aside");
      const folded = one(".about:not([open])", held);
      held.replaceChildren(...pieces(html).childNodes);
      if (folded) one(".about", held).open = false;
    };
    const heard = (event) => {
      const news = JSON.parse(event.data);
      const follows = atEnd();
      stand(news.stand);
      aside(news.aside);
      one("#none")?.remove();
      if (news.until > place.until) {
        const fresh = [...pieces(news.html).children].filter((it) => Number(it.dataset.seq) > place.until);
        list.append(...fresh);
        place.until = news.until;
        // A call that ends later changes where it stands.
        refresh();
        if (follows) { trim(false); scrollTo({ top: document.documentElement.scrollHeight }); }
        else if (fresh.length) {
          unseen += fresh.length;
          button.textContent = `${unseen} new below`;
          button.hidden = false;
          // Whoever reads something else keeps it; what is let go lies on the other side.
          const items = all(":scope > li", list);
          if (items.length > MOST + 200) trim(items[MOST / 2].getBoundingClientRect().top > 0);
        }
      }
    };
    // Calls that were running when they were shown are asked for again.
    let asking = false;
    const refresh = async () => {
      const running = one("li.call:has(> .said > details.works)", list);
      if (!running || asking) return;
      asking = true;
      try {
        const from = Number(running.dataset.seq);
        const piece = await fetchPiece(`after=${from - 1}&limit=200`);
        for (const it of [...piece.body.children]) {
          const old = all(`:scope > li[data-seq="${it.dataset.seq}"]`, list);
          const was = old.find((is) => is.classList.contains("call") && one("details.works", is));
          if (was && it.classList.contains("call") && old.length === 1) {
            if (one("details[open]", was)) one("details", it).open = true;
            was.replaceWith(it);
          }
        }
      } catch { /* the next news ask again */ }
      asking = false;
    };
    const follow = () => listen(`/api/v1/sessions/${session}/events?after=${place.until}`, {
      again: () => `/api/v1/sessions/${session}/events?after=${place.until}`,
      on: { news: heard, reload: () => location.reload() },
    });
    if (live) {
      follow();
      // Rows get their height only when they come into sight: the end moves away for some frames. Whoever scrolls up is left alone.
      let [left, at] = [location.hash ? 0 : 30, 0];
      const toTheEnd = () => {
        if (left-- <= 0 || scrollY < at - 4) return;
        scrollTo({ top: document.documentElement.scrollHeight });
        at = scrollY;
        requestAnimationFrame(toTheEnd);
      };
      toTheEnd();
    }
    addEventListener("scroll", () => { if (unseen && atEnd()) { unseen = 0; button.hidden = true; } }, { passive: true });
  }

  // Where there is little room, what was said and done comes first.
  if (matchMedia("(max-width: 60rem)").matches) for (const it of all(".about")) it.open = false;

  // --- acting
  const post = async (session, act, body) => {
    const answer = await fetch(`/api/v1/sessions/${session}/${act}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Segno-CSRF": csrf },
      body: JSON.stringify(body),
    });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    const error = said.error ?? { message: `the server answered ${answer.status}`, hints: [] };
    throw new Error([error.message, ...(error.hints ?? [])].join("\n"));
  };
  const confirmed = (text) => new Promise((done) => {
    const ask = one("#ask");
    one("#ask-text").textContent = text;
    ask.returnValue = "no";
    ask.addEventListener("close", () => done(ask.returnValue === "yes"), { once: true });
    ask.showModal();
  });
  const words = {
    pause: "asked to pause", stop: "asked to stop", resume: "it goes on", note: "noted", checkpoint: "checkpoint made",
    extend: "allowed", "reset-breaker": "the breaker is closed", answer: "answered", undo: "undone", restore: "files are put back",
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form.act");
    if (!form) return;
    event.preventDefault();
    const { act, session } = form.dataset;
    const body = {};
    for (const [name, value] of new FormData(form)) if (value !== "") body[name] = value;
    if (act === "answer") {
      body.answer = event.submitter?.value || body.words || "";
      delete body.words;
      if (!body.answer) { one('input[name="words"]', form)?.focus(); return; }
    }
    const buttons = all("button", form);
    for (const it of buttons) it.disabled = true;
    try {
      let said = await post(session, act, body);
      if (said.mark && said.plan) {
        const nothing = !(said.plan.writes?.length || said.plan.removes?.length);
        if (nothing) { say("no file is different: there is nothing to put back"); return; }
        const kept = (said.plan.kept ?? []).map((it) => `left as it is: ${it.path}, ${it.why}`);
        if (!await confirmed([said.question, ...kept].join("\n"))) { say("nothing was changed"); return; }
        said = await post(session, act, { ...body, mark: said.mark });
      }
      const warned = (said.warnings ?? []).join("\n");
      say(warned ? `${words[act]}\n${warned}` : words[act]);
      form.reset();
      form.closest("details.more")?.removeAttribute("open");
    } catch (problem) {
      say(problem.message, true);
    } finally {
      for (const it of buttons) it.disabled = false;
    }
  });
  // A menu closes when somebody goes elsewhere.
  document.addEventListener("click", (event) => {
    for (const it of all("details.more[open]")) if (!it.contains(event.target)) it.open = false;
  });
  // A choice in a list narrows it at once.
  for (const it of all(".narrow select, .narrow input[type=checkbox]")) it.addEventListener("change", () => it.form.requestSubmit());

  // --- keys
  const move = (by) => {
    const items = all(".rows .row, .moments > li, .hits > li");
    if (!items.length) return;
    const at = items.findIndex((it) => it.classList.contains("at"));
    const next = items[Math.min(items.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by))];
    for (const it of items) it.classList.remove("at");
    next.classList.add("at");
    next.scrollIntoView({ block: "nearest" });
    one("a.open, summary, .when a", next)?.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) {
      if (event.key === "Escape") event.target.blur?.();
      return;
    }
    const keys = {
      j: () => move(1), k: () => move(-1),
      "/": () => one("#find").focus(), "?": () => one("#keys").showModal(),
      u: () => { location.href = "/"; },
      g: () => scrollTo({ top: 0 }), G: () => scrollTo({ top: document.documentElement.scrollHeight }),
      Escape: () => { for (const it of all("details.more[open]")) it.open = false; },
    };
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
