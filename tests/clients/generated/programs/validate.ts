// Reads answers with the schemas of zod that orval makes of the document: `validate.js URL KEY`.
import assert from "node:assert/strict";
import { listBooksResponse, listEventsResponse, listOperationsResponse, readBookResponse } from "./orval/zod.js";

const [url, key] = process.argv.slice(2) as [string, string];

async function read(path: string): Promise<unknown> {
  const answer = await fetch(`${url}${path}`, { headers: { "X-API-Key": key } });
  assert.equal(answer.status, 200);
  return answer.json();
}

const page = listBooksResponse.parse(await read("/api/v2/books?limit=5"));
assert.equal(page.results.length, 5);
assert.equal(readBookResponse.parse(await read(`/api/v2/books/${page.results[0]?.id}`)).title, page.results[0]?.title);
assert(listOperationsResponse.parse(await read("/api/v2/operations")).results.length > 0);
assert(listEventsResponse.parse(await read("/api/v2/events?kinds=book.created")).results.length > 0);
assert(!listBooksResponse.safeParse({ results: [{}] }).success);
