"""Asks URL with the bytes of FILE on N connections until standard input ends: clients.py URL FILE N

Says "asking" when every connection has had an answer, and at the end how often each status or problem came, as JSON.
"""
import collections
import http.client
import json
import pathlib
import sys
import threading
import urllib.parse


def ask(url, body, ended, counts, lock, first):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    while not ended.is_set():
        try:
            connection.request("POST", url.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            what = str(answer.status)
            # A client that keeps a connection which the server has announced to close loses its next request by itself.
            if answer.will_close:
                connection.close()
        except (OSError, http.client.HTTPException) as problem:
            what = repr(problem)
            connection.close()
        with lock:
            counts[what] += 1
        first.release()
    connection.close()


def main(url, file, number):
    body, ended, counts, lock = pathlib.Path(file).read_bytes(), threading.Event(), collections.Counter(), threading.Lock()
    firsts = [threading.Semaphore(0) for _ in range(number)]
    threads = [threading.Thread(target=ask, args=(urllib.parse.urlsplit(url), body, ended, counts, lock, first)) for first in firsts]
    for thread in threads:
        thread.start()
    for first in firsts:
        first.acquire()
    print("asking", flush=True)
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
