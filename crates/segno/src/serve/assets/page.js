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

  // Pieces are put in so that what has not changed stays the very same element: whoever types, chooses or has opened something there
  // keeps it, and the focus never moves to something else. Elements are the same that have the same name.
  const name = (it) => it.nodeType !== Node.ELEMENT_NODE ? `#${it.nodeType}`
    : [it.tagName, it.id, it.dataset.key, it.dataset.question, it.dataset.id, it.dataset.act].join(" ");
  // What people do to an element, not the server.
  const theirs = new Set(["open", "disabled"]);
  const put = (held, fresh) => {
    const old = new Map();
    for (const it of held.childNodes) old.set(name(it), [...(old.get(name(it)) ?? []), it]);
    const pairs = [...fresh.childNodes].map((it) => [it, old.get(name(it))?.shift()]);
    for (const gone of [...old.values()].flat()) gone.remove();
    let at = held.firstChild;
    for (const [it, same] of pairs) {
      if (!same) { held.insertBefore(it, at); continue; }
      if (same === at) at = at.nextSibling;
      else held.insertBefore(same, at);
      if (it.nodeType !== Node.ELEMENT_NODE) {
        if (same.nodeValue !== it.nodeValue) same.nodeValue = it.nodeValue;
        continue;
      }
      for (const { name: attribute, value } of [...it.attributes]) {
        if (!theirs.has(attribute) && same.getAttribute(attribute) !== value) same.setAttribute(attribute, value);
      }
      for (const { name: attribute } of [...same.attributes]) {
        if (!theirs.has(attribute) && !it.hasAttribute(attribute)) same.removeAttribute(attribute);
      }
      put(same, it);
    }
  };
  // What was being typed into something that is not there any more was not for anything else.
  const renew = (held, html) => {
    const typed = all("form.act", held).filter((form) => all("input:not([type=hidden]), textarea", form).some((it) => it.value));
    const focus = held.contains(document.activeElement) ? document.activeElement : null;
    put(held, pieces(html));
    if (typed.some((form) => !form.isConnected && form.dataset.act === "answer")) {
      say("the question that you were answering does not wait any more", true);
    }
    if (focus && document.activeElement !== focus) (focus.isConnected ? focus : one("#main")).focus({ preventScroll: true });
  };

  // --- staying up to date
  const lost = (is) => {
    line.textContent = is ? "connection lost, trying again" : "live";
    line.classList.toggle("off", is);
  };
  const signedOut = () => {
    line.textContent = "signed out: segno serve --link signs in again";
    line.classList.add("off");
  };

  // A browser opens six connections to a server and no more, whatever number of pages it shows. So only pages that can be seen are
  // live, not more than a few at once, and where there are more they take turns.
  const PLACES = ["segno-live-0", "segno-live-1", "segno-live-2"];
  const TURN = 4000;
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const seen = () => document.visibilityState !== "hidden";
  const untilSeen = () => new Promise((done) => {
    const look = () => { if (seen()) { document.removeEventListener("visibilitychange", look); done(); } };
    document.addEventListener("visibilitychange", look);
    look();
  });
  const queued = async (place) => {
    const { held, pending } = await navigator.locks.query();
    return pending.some((it) => it.name === place) && PLACES.every((one) => held.some((it) => it.name === one));
  };
  // Runs what keeps a connection when there is a place for it.
  const inPlace = async (what) => {
    // Elsewhere than on this machine and over TLS there are no locks; then every page is for itself.
    if (!navigator.locks) { await what(""); return; }
    for (const place of PLACES) {
      const had = await navigator.locks.request(place, { ifAvailable: true }, async (lock) => {
        if (lock) await what(place);
        return Boolean(lock);
      });
      if (had) return;
    }
    const place = PLACES[Math.floor(Math.random() * PLACES.length)];
    await navigator.locks.request(place, () => what(place));
  };

  let given = 0;
  const quiet = () => { given += 1; };
  // Hears what is told at an address, until `quiet` or another `listen`.
  const listen = async (events) => {
    given += 1;
    const mine = given;
    let wait = 1000;
    while (mine === given) {
      await untilSeen();
      let fine = false;
      await inPlace(async (place) => {
        if (mine !== given || !seen()) { fine = true; return; }
        await new Promise((end) => {
          const begun = Date.now();
          const source = new EventSource(events.address());
          let heardAt = Date.now();
          const done = (good) => { fine = good; source.close(); clearInterval(watched); document.removeEventListener("visibilitychange", hide); end(); };
          const hide = () => { if (!seen()) done(true); };
          document.addEventListener("visibilitychange", hide);
          // The server says something every quarter of a minute: silence is a connection that nobody has closed.
          const watched = setInterval(async () => {
            if (mine !== given) done(true);
            else if (Date.now() - heardAt > 45000) { lost(true); done(false); }
            else if (place && Date.now() - begun > TURN && await queued(place)) { line.textContent = "live by turns"; done(true); }
          }, 1000);
          source.onopen = () => { heardAt = Date.now(); wait = 1000; if (mine === given) lost(false); };
          source.addEventListener("alive", () => { heardAt = Date.now(); });
          source.onerror = () => done(false);
          for (const [word, heard] of Object.entries(events.on)) {
            source.addEventListener(word, (event) => { heardAt = Date.now(); if (mine === given) heard(event); });
          }
        });
      });
      if (mine !== given || fine) continue;
      lost(true);
      // Why it was lost is told to a question, not to a stream.
      try {
        const answer = await fetch("/api/v1/openapi.json", { method: "HEAD" });
        if (answer.status === 401) {
          signedOut();
          // Somebody may sign in again elsewhere in this browser, and come back.
          await new Promise((back) => document.addEventListener("visibilitychange", back, { once: true }));
          continue;
        }
      } catch { /* the server is not there */ }
      await sleep(wait);
      wait = Math.min(wait * 1.5, 15000);
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
        if (answer.status === 401) signedOut();
        if (answer.ok) {
          const at = one(".row.at", rows)?.dataset.id;
          renew(rows, await answer.text());
          if (at) one(`.row[data-id="${at}"]`, rows)?.classList.add("at");
        }
      } catch { /* the event source says that the connection is lost */ }
      setTimeout(() => { busy = false; if (again) { again = false; load(); } }, 250);
    };
    // Each connection begins with such an event: it may have missed some.
    let change = 0;
    const changed = (event) => {
      const now = JSON.parse(event.data).change;
      if (now !== change) { change = now; load(); }
    };
    listen({ address: () => "/api/v1/events", on: { sessions: changed } });
  }

  const stand = (news) => {
    renew(one("#stand"), news.stand);
    renew(one("#aside"), news.aside);
  };

  const timeline = one("#timeline");
  // The other parts of a session are made anew when something happens in it.
  const part = one("#part");
  if (part && !timeline) {
    const session = part.dataset.session;
    let after = Number(part.dataset.seq);
    let busy = false;
    let again = false;
    const load = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (answer.ok) {
          const now = new DOMParser().parseFromString(await answer.text(), "text/html");
          const fresh = one("#part", now);
          if (fresh) renew(part, fresh.innerHTML);
        }
      } catch { /* the event source says that the connection is lost */ }
      setTimeout(() => { busy = false; if (again) { again = false; load(); } }, 1000);
    };
    const heard = (event) => {
      const news = JSON.parse(event.data);
      stand(news);
      if (news.until > after) { after = news.until; load(); }
    };
    const address = () => `/api/v1/sessions/${session}/events?after=${after}`;
    listen({ address, on: { news: heard, reload: () => location.reload() } });
  }

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

    const heard = (event) => {
      const news = JSON.parse(event.data);
      const follows = atEnd();
      stand(news);
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
    const follow = () => listen({
      address: () => `/api/v1/sessions/${session}/events?after=${place.until}`,
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
    const asked = fetch(`/api/v1/sessions/${session}/${act}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Segno-CSRF": csrf },
      body: JSON.stringify(body),
    });
    const answer = await asked.catch(() => {
      throw new Error("the server does not answer: look whether it was done when it is there again");
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
    // The words of a form are its answer, and the word on a button is that of its own form.
    if (act === "answer") body.answer ??= event.submitter?.value || "";
    if (act === "answer" && !body.answer) { one('input[name="answer"]', form)?.focus(); return; }
    const buttons = all("button", form);
    for (const it of buttons) it.disabled = true;
    try {
      let said = await post(session, act, body);
      if (said.mark && said.plan) {
        const nothing = !(said.plan.writes?.length || said.plan.removes?.length);
        if (nothing && (act === "undo" || act === "restore")) { say("no file is different: there is nothing to put back"); return; }
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
