-- Called by benchmarks/support/load.py with: column, round, number of books, and what the column needs beside them.

local threads = 0
local columns = {}

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(arguments)
  local column, round, books = arguments[1], tonumber(arguments[2]), tonumber(arguments[3])
  wrk.headers["Content-Type"] = "application/json"
  math.randomseed(round * 10 + number)
  request = columns[column](books, round, {unpack(arguments, 4)})
end

function columns.get(books)
  return function()
    return wrk.format("GET", "/api/books/" .. math.random(books))
  end
end

function columns.list100()
  return function()
    return wrk.format("GET", "/api/books?limit=100&skip=" .. math.random(0, 400))
  end
end

function columns.list10()
  return function()
    return wrk.format("GET", "/api/books?limit=10&skip=" .. math.random(0, 400))
  end
end

-- With the name and the value of a header.
function columns.bearer(books, _, header)
  wrk.headers[header[1]] = header[2]
  return columns.get(books)
end

columns["api-key"] = columns.bearer

function columns.rare(_, _, surnames)
  return function()
    return wrk.format("GET", "/api/books?author=" .. surnames[math.random(#surnames)])
  end
end

-- Part of one genre in ten, in small letters.
function columns.common()
  return function()
    return wrk.format("GET", "/api/books?genre=novel")
  end
end

function columns.put(books)
  return function()
    local body = string.format('{"year": %d}', math.random(1000, 2020))
    return wrk.format("PUT", "/api/books/" .. math.random(books), nil, body)
  end
end

function columns.post(_, round)
  local serial = round * 10000000 + number * 5000000
  return function()
    serial = serial + 1
    local body = '{"title": "New %d", "author": "A. Writer", "year": 2024, "isbn": "%s", "genre": "Fiction"}'
    return wrk.format("POST", "/api/books", nil, body:format(serial, isbn(serial)))
  end
end

-- Of books (979-0 is music's), and with a true check digit: a service may refuse others.
function isbn(serial)
  local digits = string.format("978%09d", serial)
  local sum = 0
  for place = 1, 12 do
    sum = sum + digits:sub(place, place) * (place % 2 == 0 and 3 or 1)
  end
  return digits .. (10 - sum % 10) % 10
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format(
    '{"requests": %d, "seconds": %f, "failed": %d, "p50": %f, "p99": %f}\n',
    summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
  ))
end
