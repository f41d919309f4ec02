// A program with the client that openapi-generator makes of the document without webhooks: `program.js URL KEY`.
import assert from "node:assert/strict";
import { BooksApi, Configuration, EventSelector, OperationRequestKind, OperationsApi } from "./typescript-fetch/index.js";

const [url, key] = process.argv.slice(2) as [string, string];
const configuration = new Configuration({ basePath: url, apiKey: key });
const books = new BooksApi(configuration);
const page = await books.listBooks({ limit: 1 });
assert.equal(page.results.length, 1);
const bookCreate = { title: "Placówka", author: "Bolesław Prus", year: 1886, isbn: "978-83-7327-191-3", genre: "Novel" };
const book = await books.createBook({ bookCreate });
assert.equal(book.title, bookCreate.title);
const filter = { author: "nobody at all" };
const operationRequest = { kind: OperationRequestKind.Delete, filter };
const preview = await new OperationsApi(configuration).beginOperation({ operationRequest, dryRun: true });
assert.equal(preview.matched, 0);
assert.deepEqual(Object.values(EventSelector).at(-1), "*");
