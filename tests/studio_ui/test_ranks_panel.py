"""A session on several GPUs, stage by stage: from chunk timings to the rows of the panel."""

from __future__ import annotations

from engine.protocol.messages import ChunkTimings, RankTime
from studio.panels.ranks import RanksTable
from studio.state import EngineView, SessionView
from studio.timings import STAGES, Timings
from studio.words import engine_words

S = 1_000_000_000
RANKS = [RankTime(r, "denoise", f"cuda:{r}", 150.0 + r, 30.0) for r in range(3)]
RANKS.append(RankTime(3, "decode", "cuda:3", 60.0))


def chunk(number, ranks):
    return ChunkTimings(
        session=1, epoch=1, chunk_index=number, first_frame=4 * number, frame_count=4,
        stage_ms={"denoise": 152.0, "decode": 61.0}, ranks=ranks,
    )  # fmt: skip


def test_rows_show_each_ranks_time_per_frame_and_what_the_link_takes(themed, qtbot):
    timings, table = Timings(), RanksTable()
    qtbot.addWidget(table)
    table.show_ranks(timings.view(0).ranks)
    assert table.isHidden()
    for number in range(10):
        timings.chunk(chunk(number, RANKS), S)
    view = timings.view(S)
    assert set(view.stages) == {"denoise", "decode"} <= set(STAGES)  # ranks are not stages
    table.show_ranks(view.ranks)
    assert not table.isHidden()
    texts = {rank: (p50.text(), link.text()) for rank, (_, p50, link) in table.rows.items()}
    assert texts == {0: ("37.5", "20 %"), 1: ("37.8", "20 %"), 2: ("38.0", "20 %"),
                     3: ("15.0", "–")}  # fmt: skip


def test_another_session_has_other_ranks_or_none(themed, qtbot):
    timings, table = Timings(), RanksTable()
    qtbot.addWidget(table)
    timings.chunk(chunk(0, RANKS), S)
    table.show_ranks(timings.view(S).ranks)
    timings.chunk(chunk(1, RANKS[:2]), S)
    table.show_ranks(timings.view(S).ranks)
    assert list(table.rows) == [0, 1]
    timings.chunk(chunk(2, []), S)
    table.show_ranks(timings.view(S).ranks)
    assert table.isHidden()


def test_the_status_bar_says_on_how_many(themed):
    session = SessionView(model="avatar-57b", ranks="3 denoise ranks + 1 decode rank")
    text, _ = engine_words(EngineView(link="ready"), session)
    assert text.endswith("avatar-57b · 3 denoise ranks + 1 decode rank")
