// The official `openai` npm SDK through the gateway. Run by test_openai_node.py, which names the gateway and the keys.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

// the SDK lies in the target folder, not beside this file
const { default: OpenAI } = await import(createRequire(process.env.SDK_FOLDER + "/").resolve("openai"));

const client = (apiKey = process.env.ACME_KEY) =>
  new OpenAI({ apiKey, baseURL: process.env.BASE_URL, maxRetries: 0, timeout: 20_000 });

const ask = (more = {}) => ({
  model: "m",
  messages: [{ role: "user", content: "hello there" }],
  max_tokens: 8,
  ...more,
});

async function texts(stream) {
  const all = [];
  for await (const chunk of stream) {
    const text = chunk.choices[0]?.delta?.content;
    if (text) all.push(text);
  }
  return all;
}

/** The record of a request once it has ended. */
async function ended(id) {
  const url = `${process.env.BASE_URL}/../generations/${id}`;
  const end = Date.now() + 15_000;
  for (;;) {
    const answer = await fetch(new URL(url), { headers: { Authorization: `Bearer ${process.env.ACME_KEY}` } });
    const record = answer.status === 200 ? await answer.json() : null;
    if (record?.ended_at) return record;
    assert.ok(Date.now() < end, `waited 15 s for ${id} to end`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a stream arrives whole", async () => {
  assert.equal((await texts(await client().chat.completions.create(ask({ stream: true })))).length, 8);
});

test("an answer that is not streamed", async () => {
  const answer = await client().chat.completions.create(ask());
  assert.equal(answer.usage.completion_tokens, 8);
  assert.ok(answer.choices[0].message.content);
});

test("aborting a stream cancels it", async () => {
  const id = "node-abort-1";
  const headers = { "Idempotency-Key": id };
  const stream = await client().chat.completions.create(ask({ stream: true, max_tokens: 2000 }), { headers });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) break;
  }
  stream.controller.abort();
  const record = await ended(id);
  assert.deepEqual([record.state, record.ended_by], ["CANCELLED", "client_closed"]);
});

test("a stream that breaks raises instead of completing", async () => {
  for (const fault of ["torn@3", "reset@3", "no-done"]) {
    const stream = await client().chat.completions.create(ask({ stream: true }), { headers: { "X-Sim": fault } });
    await assert.rejects(texts(stream), OpenAI.APIError, fault);
  }
});

test("heartbeats in a silence are nothing to the SDK", async () => {
  const headers = { "X-Sim": "stall=600ms@3" };
  const stream = await client().chat.completions.create(ask({ stream: true }), { headers });
  assert.equal((await texts(stream)).length, 8);
});

test("errors are the SDK's own", async () => {
  await assert.rejects(client("sk-test-nobody-9999").chat.completions.create(ask()), OpenAI.AuthenticationError);
  await assert.rejects(client().chat.completions.create(ask({ model: "nope" })), OpenAI.NotFoundError);
  await assert.rejects(client().chat.completions.create(ask({ max_tokens: -1 })), OpenAI.BadRequestError);
  const other = client(process.env.OTHER_KEY);
  const stream = await other.chat.completions.create(ask({ stream: true, max_tokens: 2000 }));
  await assert.rejects(other.chat.completions.create(ask()), OpenAI.RateLimitError);
  stream.controller.abort();
});

test("the models are listed", async () => {
  const names = [];
  for await (const model of client().models.list()) names.push(model.id);
  assert.deepEqual(names.sort(), ["m", "n"]);
});
