// Browsers refuse to start a worker for a page that was opened from disk. The search gets a hidden frame instead,
// which runs the same script. Over HTTP this file does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.frame = new Promise((ready) => {
        frame.onload = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          this.load(inside, script).then(() => ready(inside));
          inside.importScripts = (...scripts) =>
            scripts.reduce((before, next) => before.then(() => this.load(inside, next)), Promise.resolve());
        };
      });
      frame.srcdoc = "<!doctype html><title>search</title>";
      document.body.append(frame);
    }

    load(inside, script) {
      return new Promise((loaded, failed) => {
        const element = inside.document.createElement("script");
        element.onload = loaded;
        element.onerror = failed;
        element.src = new URL(script, location.href);
        inside.document.head.append(element);
      });
    }

    postMessage(data) {
      this.frame.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
