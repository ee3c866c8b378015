-- wrk -s post.lua URL -- BODY known|new: posts the review in the file BODY, with another number in the place of its
-- marker each time. "known" takes fifty numbers in turn, as pods of fifty templates do; "new" never takes one twice.
-- Prints the figures as one line of JSON.
local marker, templates = "@NUMBER@", 50
local before, after, requests, next_number, fresh

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local body = file:read("*a")
  file:close()
  local first, last = body:find(marker, 1, true)
  before, after = body:sub(1, first - 1), body:sub(last + 1)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  fresh = args[2] == "new"
  next_number = fresh and os.time() * 1000000 or 0
  requests = {}
  for number = 0, templates - 1 do
    requests[number] = formatted(number)
  end
end

function formatted(number)
  return wrk.format(nil, nil, nil, before .. string.format("%016d", number) .. after)
end

function request()
  next_number = next_number + 1
  return fresh and formatted(next_number) or requests[next_number % templates]
end

function done(summary, latency)
  local wrong = summary.errors
  local failed = wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout
  print(string.format(
    '{"requests": %d, "seconds": %f, "failed": %d, "p50_ms": %f, "p99_ms": %f}',
    summary.requests, summary.duration / 1e6, failed,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
