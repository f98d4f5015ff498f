"""Prints the continuation of a text as a served language model makes it, character by character.

    python examples/language_model/talk.py OUT/tokens.json "the old fo" [--model lm.buffers] [--url http://localhost:8000]
"""
import argparse
import json
import urllib.request


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens")
    parser.add_argument("text")
    parser.add_argument("--model", default="lm.buffers")
    parser.add_argument("--url", default="http://localhost:8000")
    arguments = parser.parse_args()
    with open(arguments.tokens) as file:
        characters = json.load(file)
    prompt = [0, *(characters.index(c) for c in arguments.text)]
    request = urllib.request.Request(f"{arguments.url}/v2/models/{arguments.model}/generate_stream",
                                     json.dumps({"prompt": prompt}).encode(), {"Content-Type": "application/json"})
    print(arguments.text, end="", flush=True)
    with urllib.request.urlopen(request) as events:
        for line in events:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise SystemExit(f"\n{event['error']}")
            print(characters[event["token"]] if "token" in event else f"\n[{event['finish_reason']}]", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
