"""Language models and texts: generating, talking, translating, tokens."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Iterator


from . import c
from ._base import Error, Handle, Options, check, encoded, made, value_of
from .arrays import Array, copied
from .results import Bleu, ChatState, TokenFileInfo, TokenizerInfo, Translation
from .run import Run
from .trainer import Context

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import ChatOptions, TranslateOptions

_FLOATS = ctypes.POINTER(ctypes.c_float)


class _Text:
    """A text that comes back by pointer and size: it may hold zero bytes."""

    def __init__(self) -> None:
        self.pointer, self.size = ctypes.c_char_p(), ctypes.c_int64()
        self.at = ctypes.byref(self.pointer), ctypes.byref(self.size)

    def get(self) -> bytes:
        return ctypes.string_at(ctypes.cast(self.pointer, ctypes.c_void_p), self.size.value) if self.size.value else b""


class Tokenizer(Handle):
    """A vocabulary: `Tokenizer("folder/")` of a Hugging Face model, `Tokenizer(kind="bytes")`."""

    _what = "tokenizer"

    def __init__(self, folder: str | os.PathLike[str] = "", kind: str = "auto") -> None:
        super().__init__(
            made(c.mixt_tokenizer_open, encoded(kind, "kind"), encoded(folder, "folder")), c.mixt_tokenizer_close
        )

    @classmethod
    def _taken(cls, pointer: int) -> Tokenizer:
        found = cls.__new__(cls)
        Handle.__init__(found, pointer, c.mixt_tokenizer_close)
        return found

    @property
    def info(self) -> TokenizerInfo:
        info: TokenizerInfo = value_of(c.mixt_tokenizer_describe(self._p))
        return info

    def __len__(self) -> int:
        return int(c.mixt_tokenizer_describe(self._p).size)

    def encode(self, text: str | bytes, *, marked: bool = False) -> list[int]:
        """The tokens of a text. `marked`: markers that are written out, as "<|im_end|>", are one token each."""
        if not isinstance(text, (str, bytes)):
            raise Error(f"encode: expected a text, found {type(text).__name__}")
        raw = text.encode() if isinstance(text, str) else text
        tokens, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_int64()
        function = c.mixt_tokenizer_encode_marked if marked else c.mixt_tokenizer_encode
        check(function(self._p, raw, len(raw), ctypes.byref(tokens), ctypes.byref(count)))
        try:
            return [tokens[i] for i in range(count.value)]
        finally:
            c.mixt_tokens_free(tokens)

    def decode(self, tokens: Any) -> str:
        """The text of tokens."""
        decoder = made(c.mixt_decoder_new, self._p, False)
        try:
            return _decoded(decoder, list(tokens)) + _decoded_end(decoder)
        finally:
            c.mixt_decoder_free(decoder)

    @classmethod
    def train(
        cls, files: list[str], size: int, folder: str | os.PathLike[str], *, overwrite: bool = False
    ) -> Tokenizer:
        """Learns a vocabulary of byte pairs from texts, writes it into a folder and opens it."""
        array = (ctypes.c_char_p * max(len(files), 1))(*[encoded(f, "file") for f in files])
        check(
            c.mixt_tokenizer_train(
                array, len(files), int(size), encoded(folder, "folder"), overwrite, c.mixt_progress_fn(), None, None
            )
        )
        return cls(folder)

    def make(
        self, text: str | os.PathLike[str], out: str | os.PathLike[str], *, overwrite: bool = False
    ) -> TokenFileInfo:
        """Tokenises a file of text into a token file, to train on."""
        found = c.mixt_token_file_info()
        check(
            c.mixt_token_file_make(
                self._p, encoded(text, "text"), encoded(out, "out"), overwrite, c.mixt_progress_fn(), None, found
            )
        )
        return value_of(found)  # type: ignore[no-any-return]


def _decoded(decoder: int, tokens: list[int]) -> str:
    got = _Text()
    try:
        array = (ctypes.c_int32 * max(len(tokens), 1))(*tokens)
    except TypeError as fault:
        raise Error(f"decode: {fault}") from None
    check(c.mixt_decoder_put(decoder, array, len(tokens), *got.at))
    return got.get().decode("utf-8", "replace")


def _decoded_end(decoder: int) -> str:
    got = _Text()
    check(c.mixt_decoder_end(decoder, *got.at))
    return got.get().decode("utf-8", "replace")


def tokenize(text: str, folder: str | os.PathLike[str] = "", kind: str = "auto") -> list[int]:
    """The tokens of a text, with the vocabulary of a folder; without one its bytes."""
    with Tokenizer(folder, kind) as tokenizer:
        return tokenizer.encode(text)


class Generator(Handle):
    """A language model that writes on: of a run, or of a Hugging Face folder."""

    _what = "generator"

    def __init__(
        self, folder: str | os.PathLike[str], *, weights: str | int = "final", device: str = "auto", threads: int = 0
    ) -> None:
        context = Context(device, threads)
        generator, tokenizer = ctypes.c_void_p(), ctypes.c_void_p()
        check(
            c.mixt_generator_load(
                context._p,
                encoded(folder, "folder"),
                encoded(str(weights)),
                ctypes.byref(generator),
                ctypes.byref(tokenizer),
            )
        )
        super().__init__(generator.value or 0, None, context)
        self.tokenizer = Tokenizer._taken(tokenizer.value) if tokenizer.value else None

    def tokens(
        self,
        prompt: str | list[int],
        count: int = 256,
        *,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
    ) -> Iterator[int]:
        """Tokens that come behind a prompt, one by one. The same seed gives the same."""
        begin = self._prompt(prompt)
        sampling = c.mixt_sampling(temperature, top_k, top_p, seed)
        with self._lock:
            check(c.mixt_generator_start(self._p, (ctypes.c_int32 * len(begin))(*begin), len(begin)))
        token = ctypes.c_int32()
        for _ in range(count):
            with self._lock:
                check(c.mixt_generator_next(self._p, sampling, ctypes.byref(token)))
            yield token.value

    def _prompt(self, prompt: str | list[int]) -> list[int]:
        if not isinstance(prompt, str):
            if not prompt:
                raise Error("the prompt has no token")
            return [int(t) for t in prompt]
        if self.tokenizer is None:
            raise Error("the model has no tokenizer: give the prompt as a list of token ids")
        found = self.tokenizer.encode(prompt or "\n")
        start = self.tokenizer.info
        return ([start.start] if start.kind == "json" and start.start >= 0 else []) + found

    def text(self, prompt: str = "", count: int = 256, **sampling: Any) -> Iterator[str]:
        """The same as text, piece by piece, whole characters only."""
        if self.tokenizer is None:
            raise Error("the model has no tokenizer: use tokens()")
        decoder = made(c.mixt_decoder_new, self.tokenizer._p, True)
        try:
            for token in self.tokens(prompt, count, **sampling):
                piece = _decoded(decoder, [token])
                if piece:
                    yield piece
            rest = _decoded_end(decoder)
            if rest:
                yield rest
        finally:
            c.mixt_decoder_free(decoder)

    @property
    def logits(self) -> Array:
        """Scores of the token that comes next; once a text has begun."""
        found, count = _FLOATS(), ctypes.c_int64()
        with self._lock:
            check(c.mixt_generator_logits(self._p, ctypes.byref(found), ctypes.byref(count)))
            return copied(found, count.value)


def generate(
    folder: str | os.PathLike[str],
    prompt: str = "",
    tokens: int = 256,
    *,
    stop: str | None = None,
    weights: str | int = "final",
    device: str = "auto",
    **sampling: Any,
) -> str:
    """Text that a language model writes behind a prompt: temperature, top_k, top_p, seed. `stop` ends it."""
    with Generator(folder, weights=weights, device=device) as generator:
        made_so_far = ""
        for piece in generator.text(prompt, tokens, **sampling):
            made_so_far += piece
            if stop and stop in made_so_far:
                return made_so_far[: made_so_far.index(stop)]
        return made_so_far


class Chat(Handle):
    """A conversation with a language model: `for piece in chat.ask("hello"): print(piece, end="")`."""

    _what = "conversation"

    def __init__(
        self, folder: str | os.PathLike[str], *, device: str = "auto", threads: int = 0, **options: Unpack[ChatOptions]
    ) -> None:
        filled = Options(c.mixt_chat_options, options, "chat")
        context = Context(device, threads)
        super().__init__(
            made(c.mixt_chat_open, context._p, encoded(folder, "folder"), filled.at), c.mixt_chat_close, context
        )

    def ask(self, message: str) -> Iterator[str]:
        """The answer to a message, piece by piece. Left early, it ends where it is."""
        if not isinstance(message, str):
            raise Error(f"ask: expected a text, found {type(message).__name__}")
        raw = message.encode()
        with self._lock:
            check(c.mixt_chat_ask(self._p, raw, len(raw)))
        got, more = _Text(), ctypes.c_bool(True)
        ended = False
        try:
            while more.value:
                with self._lock:
                    check(c.mixt_chat_next(self._p, *got.at, ctypes.byref(more)))
                    piece = got.get().decode("utf-8", "replace")
                if piece:
                    yield piece
            ended = True
        finally:
            if not ended and not self.closed:
                c.mixt_chat_cut(self._p)

    def say(self, message: str) -> str:
        """The whole answer."""
        return "".join(self.ask(message))

    def reset(self) -> None:
        """Forgets what was said, but for the system's message."""
        with self._lock:
            check(c.mixt_chat_reset(self._p))

    @property
    def state(self) -> ChatState:
        """How the conversation stands."""
        with self._lock:
            state: ChatState = value_of(c.mixt_chat_state_get(self._p))
            return state


def chat(folder: str | os.PathLike[str], **options: Any) -> Chat:
    """Begins a conversation with the language model of a run or of a Hugging Face folder."""
    return Chat(folder, **options)


def translate(run: Any, sentences: list[str], **options: Unpack[TranslateOptions]) -> list[Translation]:
    """Translations of sentences by a model seq2seq: a mixt.Run, or the directory of one."""
    filled = Options(c.mixt_translate_options, options, "translate")
    opened = run if isinstance(run, Run) else Run.load(run)
    try:
        texts = (ctypes.c_char_p * max(len(sentences), 1))(*[encoded(s, "sentence") for s in sentences])
        found = (c.mixt_translation * max(len(sentences), 1))()
        with opened._lock, Tokenizer(os.path.join(opened.folder, "vocab")) as tokenizer:
            status = c.mixt_translate(
                c.mixt_run_trainer(opened._idle()), tokenizer._p, texts, len(sentences), filled.at, found
            )
            filled.check(status)
        try:
            return [value_of(found[i]) for i in range(len(sentences))]
        finally:
            c.mixt_translations_free(found, len(sentences))
    finally:
        if opened is not run:
            opened.close()


def bleu(texts: list[str], references: list[str]) -> Bleu:
    """BLEU of a corpus, as sacrebleu has it by default."""
    if len(texts) != len(references):
        raise Error(f"bleu: {len(texts)} texts and {len(references)} references")
    rows = [(ctypes.c_char_p * max(len(t), 1))(*[encoded(s, "text") for s in t]) for t in (texts, references)]
    found = c.mixt_bleu()
    check(c.mixt_bleu_of(rows[0], rows[1], len(texts), found))
    return value_of(found)  # type: ignore[no-any-return]
