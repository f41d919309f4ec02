// The peer with Fastify and postgres.js: processes of Node's cluster, without an ORM. Statements are prepared, as
// postgres.js does by default.
import cluster from 'node:cluster';
import Fastify from 'fastify';
import postgres from 'postgres';

const { DATABASE_URL, HOST, PORT, WEB_CONCURRENCY } = process.env;
const TIMESTAMP_TYPE = 1114;
const UNIQUE_VIOLATION = '23505';

const TEXT = { type: 'string' };
const NEW_BOOK = { title: TEXT, author: TEXT, year: { type: 'integer' }, isbn: TEXT, genre: TEXT };
const BOOK = {
  type: 'object',
  properties: { id: { type: 'integer' }, ...NEW_BOOK, available: { type: 'boolean' }, created_at: TEXT },
};
const BOOKS = { type: 'array', items: BOOK };
const MESSAGE = { type: 'object', properties: { message: TEXT } };
const LIST_QUERY = {
  type: 'object',
  properties: {
    skip: { type: 'integer', minimum: 0, default: 0 },
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
    author: TEXT,
    genre: TEXT,
  },
};
const BOOK_ID = { type: 'object', properties: { id: { type: 'integer' } } };
const BOOK_CREATE = { type: 'object', properties: NEW_BOOK, required: Object.keys(NEW_BOOK) };
const BOOK_UPDATE = { type: 'object', properties: NEW_BOOK };

const sql = postgres(DATABASE_URL, {
  // The address has the path of a socket, which postgres.js does not decode.
  host: decodeURIComponent(new URL(DATABASE_URL).hostname),
  types: {
    // As text, without a Date: the column has no time zone, and its answers have none in the other peers.
    timestamp: { from: [TIMESTAMP_TYPE], parse: (text) => text.replace(' ', 'T') },
  },
});
const COLUMNS = sql`id, title, author, year, isbn, genre, available, created_at`;

function buildApp() {
  const app = Fastify();
  app.setErrorHandler(answerError);
  app.get('/api/books', { schema: { querystring: LIST_QUERY, response: { 200: BOOKS } } }, listBooks);
  app.get('/api/books/:id', { schema: { params: BOOK_ID, response: { 200: BOOK } } }, readBook);
  app.post('/api/books', { schema: { body: BOOK_CREATE, response: { 201: BOOK } } }, createBook);
  app.put('/api/books/:id', { schema: { params: BOOK_ID, body: BOOK_UPDATE, response: { 200: BOOK } } }, updateBook);
  app.delete('/api/books/:id', { schema: { params: BOOK_ID, response: { 200: MESSAGE } } }, deleteBook);
  return app;
}

async function listBooks({ query: { skip, limit, author, genre } }) {
  const byAuthor = author ? sql`author ILIKE ${`%${author}%`}` : sql`true`;
  const byGenre = genre ? sql`genre ILIKE ${`%${genre}%`}` : sql`true`;
  return sql`SELECT ${COLUMNS} FROM books WHERE ${byAuthor} AND ${byGenre} ORDER BY id OFFSET ${skip} LIMIT ${limit}`;
}

async function readBook({ params: { id } }) {
  return getBook(await sql`SELECT ${COLUMNS} FROM books WHERE id = ${id}`);
}

async function createBook({ body: { title, author, year, isbn, genre } }, reply) {
  reply.code(201);
  return getBook(await sql`
    INSERT INTO books (title, author, year, isbn, genre) VALUES (${title}, ${author}, ${year}, ${isbn}, ${genre})
    RETURNING ${COLUMNS}
  `);
}

async function updateBook(request) {
  const { params: { id }, body } = request;
  const present = Object.keys(NEW_BOOK).filter((name) => name in body);
  if (!present.length) return readBook(request);
  return getBook(await sql`UPDATE books SET ${sql(body, ...present)} WHERE id = ${id} RETURNING ${COLUMNS}`);
}

async function deleteBook({ params: { id } }) {
  getBook(await sql`DELETE FROM books WHERE id = ${id} RETURNING ${COLUMNS}`);
  return { message: 'Book deleted' };
}

function getBook([book]) {
  if (!book) throw Object.assign(new Error('Book not found'), { statusCode: 404 });
  return book;
}

function answerError(error, _request, reply) {
  if (error.code === UNIQUE_VIOLATION) return reply.code(409).send({ detail: 'A book with this ISBN exists' });
  return reply.code(error.validation ? 422 : error.statusCode ?? 500).send({ detail: error.message });
}

if (cluster.isPrimary) {
  for (let number = 0; number < Number(WEB_CONCURRENCY); number += 1) cluster.fork();
  // A process that ends must not go unnoticed: the others would be measured without it.
  cluster.on('exit', () => process.exit(1));
} else {
  await buildApp().listen({ host: HOST, port: Number(PORT) });
}
