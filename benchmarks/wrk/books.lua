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

columns["rare-after"] = columns.rare
columns["common-after"] = columns.common

function columns.put(books)
  return function()
    local body = string.format('{"year": %d}', math.random(1000, 2020))
    return wrk.format("PUT", "/api/books/" .. math.random(books), nil, body)
  end
end

columns["put-title"] = function(books)
  return function()
    local body = string.format('{"title": "Title %d"}', math.random(1000000))
    return wrk.format("PUT", "/api/books/" .. math.random(books), nil, body)
  end
end

-- Sends back books that were read, with another year.
columns["put-as-read"] = function(_, _, bodies)
  return function()
    local body = bodies[math.random(#bodies)]
    local changed_body = body:gsub('"year":%-?%d+', '"year":' .. math.random(1000, 2020), 1)
    return wrk.format("PUT", "/api/books/" .. body:match('"id":(%d+)'), nil, changed_body)
  end
end

-- Lends a book, and takes back the one that was lent fifty loans before. Each thread has books of its own.
function columns.loan(books)
  local count = 0
  return function()
    count = count + 1
    local is_loan = count % 2 == 1
    local turn = math.ceil(count / 2) - (is_loan and 0 or 50)
    local book = turn * 7919 % math.floor(books / 2) * 2 + number + 1
    return wrk.format("PATCH", "/api/v2/books/" .. book, nil, string.format('{"available": %s}', not is_loan))
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
