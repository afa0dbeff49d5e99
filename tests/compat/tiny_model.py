"""Writes tiny models with random weights, for ``transformers serve``; runs in its environment.

python tiny_model.py FOLDER [sees]    # a Llama, or a LLaVA
"""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{{ '<image>' if part['type'] == 'image' else part['text'] }}"
    "{% endfor %}{% endif %}\n{% endfor %}<|assistant|>"
)
SIDE, PATCH = 56, 14


def main() -> None:
    """Bytes are the vocabulary, so that no text has to be learned from."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {
        symbol: number for number, symbol in enumerate([*alphabet, "<s>", "</s>", "<image>"])
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.add_special_tokens({"additional_special_tokens": ["<image>"]})
    fast.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        bos_token_id=vocabulary["<s>"],
        eos_token_id=vocabulary["</s>"],
    )
    folder, *sees = sys.argv[1:]
    if not sees:
        LlamaForCausalLM(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        return
    vision = CLIPVisionConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=SIDE,
        patch_size=PATCH,
    )
    whole = LlavaConfig(
        vision_config=vision, text_config=config, image_token_id=vocabulary["<image>"]
    )
    LlavaForConditionalGeneration(whole).save_pretrained(folder)
    sizes = {"height": SIDE, "width": SIDE}
    processor = LlavaProcessor(
        CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=sizes),
        fast,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    )
    processor.save_pretrained(folder)


if __name__ == "__main__":
    main()
