"""Asks the questions of the benchmark through one client; prints the accuracy.

Runs in the client's environment: ``python ask.py FOLDER ADDRESS METHOD CLIENT KEY``.
"""

import json
import sys
from pathlib import Path

FORM = "Answer with the option's letter from the given choices directly."


def openai(address, key, model, video, text):
    import openai

    client = openai.OpenAI(base_url=address, api_key=key)
    messages = [{"role": "user", "content": [video, {"type": "text", "text": text}]}]
    reply = client.chat.completions.create(model=model, messages=messages)
    return reply.choices[0].message.content


def litellm(address, key, model, video, text):
    import litellm

    messages = [{"role": "user", "content": [video, {"type": "text", "text": text}]}]
    reply = litellm.completion(
        f"hosted_vllm/{model}", api_base=address, api_key=key, messages=messages, num_retries=0
    )
    return reply.choices[0].message.content


def langchain_openai(address, key, model, video, text):
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(model=model, base_url=address, api_key=key)
    return chat.invoke([HumanMessage([video, {"type": "text", "text": text}])]).content


def llama_index_llms_openai_like(address, key, model, video, text):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    # it has no block that it would send as a video
    name = Path(video["video_url"]["url"]).name
    chat = OpenAILike(model=model, api_base=address, api_key=key, is_chat_model=True, timeout=600)
    return chat.chat([ChatMessage(role="user", content=f"film:{name} {text}")]).message.content


def main():
    folder, address, method, client, key = sys.argv[1:]
    rows = json.loads((Path(folder) / "questions.json").read_text())
    ask = globals()[client.replace("-", "_")]
    right = 0
    for row in rows:
        pairs = zip("ABCDEFG", row["candidates"], strict=False)
        options = [f"{letter}. {option}" for letter, option in pairs]
        text = "\n".join([row["question"], *options, FORM])
        video = {"type": "video_url", "video_url": {"url": f"file://{row['path']}"}}
        said = ask(f"{address}/v1", key, f"longtake/{method}", video, text)
        right += said == row["letter"]
    print(right / len(rows))


if __name__ == "__main__":
    main()
