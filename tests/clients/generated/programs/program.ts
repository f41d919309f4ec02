// A program with openapi-fetch and the types that openapi-typescript makes of the document: `program.js URL KEY`.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [url, key] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl: url, headers: { "X-API-Key": key } });

function take<T>(data: T | undefined): T {
  assert(data !== undefined);
  return data;
}

const seen: number[] = [];
let cursor: string | undefined;
do {
  const query: { limit: number; cursor?: string } = cursor ? { limit: 7, cursor } : { limit: 7 };
  const page: components["schemas"]["BookPage"] = take((await client.GET("/api/v2/books", { params: { query } })).data);
  seen.push(...page.results.map((book) => book.id));
  cursor = page.next ? (new URL(page.next).searchParams.get("cursor") ?? undefined) : undefined;
} while (cursor);
assert(seen.length >= 20 && new Set(seen).size === seen.length);
const none = take((await client.GET("/api/v2/books", { params: { query: { author: "nobody at all" } } })).data);
assert.deepEqual(none.results, []);

const body = { title: "Faraon", author: "Bolesław Prus", year: 1895, isbn: "978-83-7327-190-6", genre: "Novel" };
const header = { "Idempotency-Key": "faraon-1" };
const created = await client.POST("/api/v2/books", { params: { header }, body });
const repeated = await client.POST("/api/v2/books", { params: { header }, body });
const book = take(created.data);
assert.equal(take(repeated.data).id, book.id);
const path = { book_id: book.id };
const etag = { "If-Match": created.response.headers.get("ETag") ?? "" };

const changed = await client.PATCH("/api/v2/books/{book_id}", { params: { path, header: etag }, body: { year: 1897 } });
assert.equal(take(changed.data).year, 1897);
const late = await client.PATCH("/api/v2/books/{book_id}", { params: { path, header: etag }, body: { year: 1 } });
assert.equal(late.response.status, 412);
assert.equal(take(late.error).error.code, "PRECONDITION_FAILED");

const bulk = await client.POST("/api/v2/books/bulk", {
  body: { operations: [{ op: "update", id: book.id, book: { available: false } }] },
});
assert.equal(take(bulk.data).results[0]?.id, book.id);
const history = take((await client.GET("/api/v2/books/{book_id}/history", { params: { path } })).data);
assert.deepEqual(history.results.map((change) => change.kind), ["changed", "changed", "created"]);
const reverted = await client.POST("/api/v2/books/{book_id}/revert", { params: { path }, body: { version: 1 } });
assert.equal(take(reverted.data).year, 1895);

let operation: components["schemas"]["Operation"] = take(
  (await client.POST("/api/v2/operations", { body: { kind: "edit", filter: { isbn: body.isbn }, set: { genre: "Classic" }, events: true } })).data as
    | components["schemas"]["Operation"]
    | undefined,
);
while (operation.state === "waiting" || operation.state === "running") {
  await new Promise((resolve) => setTimeout(resolve, 200));
  const answer = await client.GET("/api/v2/operations/{operation_id}", { params: { path: { operation_id: operation.id } } });
  operation = take(answer.data);
}
assert.deepEqual([operation.state, operation.changed], ["done", 1]);

const query: { kinds: ("book.created" | "book.updated")[] } = { kinds: ["book.created", "book.updated"] };
const events = take((await client.GET("/api/v2/events", { params: { query } })).data);
assert.deepEqual(new Set(events.results.map((event) => event.event)), new Set(query.kinds));
