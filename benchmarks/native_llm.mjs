// Reads a prompt and writes a reply with node-llama-cpp, whose builds use what the processor offers
// (AVX-512, AMX). benchmarks/native_llm.py runs it: node native_llm.mjs PACKAGE MODEL PROMPT THREADS TOKENS
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, file, prompt, threads, tokens] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(`${folder}/dist/index.js`).href);
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: +threads });
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({ contextSize: 2048, threads: +threads });
const sequence = context.getSequence();
const pieces = model.tokenize(readFileSync(prompt, "utf8"));

// the first round warms up
for (let round = 0; round < 2; round++) {
  await sequence.clearHistory();
  const began = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(pieces.slice(0, -1));
  const read = performance.now();
  let written = 0;
  for await (const _ of sequence.evaluate(pieces.slice(-1), { temperature: 0 })) {
    if (++written >= +tokens) break;
  }
  const reading = (1000 * pieces.length) / (read - began);
  const writing = (1000 * written) / (performance.now() - read);
  if (round) console.log(JSON.stringify({ reading, writing }));
}
process.exit(0);
