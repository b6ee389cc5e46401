// Browsers start no worker from a disk, and the theme searches in one: here its script runs in a hidden frame. Written for
// this site alone; the theme would load such a script from the network (tools/mkdocs.yml, extra.polyfills).
"use strict";
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inner = frame.contentWindow;
      const load = source => new Promise((resolve, reject) => {
        const script = this.inner.document.createElement("script");
        script.src = new URL(source, location).href;
        script.onload = resolve;
        script.onerror = reject;
        this.inner.document.documentElement.append(script);
      });
      this.inner.importScripts = async (...sources) => { for (const source of sources) await load(source); };
      this.inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })));
    }
  };
