"""One table of actions: id, text, shortcut, tooltip, icon. Menus, bars and the help sheet read it.

Knows nothing of what an action does: `app.py` connects `triggered`. An action without a shortcut
or a tooltip cannot be written down here.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from studio import icons


@dataclass(frozen=True, slots=True)
class Spec:
    """A row: `menu` is where it is listed; `group` puts a line above it."""

    id: str
    menu: str
    text: str
    shortcut: str
    icon: str
    tooltip: str
    checkable: bool = False
    group: bool = False
    tone: str = "text"


# fmt: off
TABLE: tuple[Spec, ...] = (
    Spec("open_picture", "File", "Open picture…", "Ctrl+O", "picture",
         "Make a character from a photo, painting or drawing"),
    Spec("paste_picture", "File", "Paste picture", "Ctrl+V", "paste",
         "Make a character from the picture on the clipboard"),
    Spec("open_character", "File", "Open character…", "Ctrl+Shift+O", "open",
         "Open a character saved as one .avatar file", group=True),
    Spec("save_character", "File", "Save character", "Ctrl+S", "save",
         "Save picture, framing and motion as one .avatar file"),
    Spec("save_character_as", "File", "Save character as…", "Ctrl+Shift+S", "save-as",
         "Save the character as another .avatar file"),
    Spec("quit", "File", "Quit", "Ctrl+Q", "quit",
         "Close the studio and its engine", group=True),
    Spec("undo", "Edit", "Undo", "Ctrl+Z", "undo",
         "Take back the last change to the character"),
    Spec("redo", "Edit", "Redo", "Ctrl+Shift+Z", "redo",
         "Do the change again"),
    Spec("previous_character", "Edit", "Previous character", "Ctrl+PgUp", "character",
         "Show the library's previous character", group=True),
    Spec("next_character", "Edit", "Next character", "Ctrl+PgDown", "character",
         "Show the library's next character"),
    Spec("reset_framing", "Edit", "Reset framing", "Ctrl+Shift+0", "crop",
         "Frame the face automatically again", group=True),
    Spec("reset_motion", "Edit", "Reset motion", "Ctrl+0", "reset",
         "All motion sliders back to natural"),
    Spec("go_live", "Voice", "Go live", "Space", "live",
         "Start or stop talking with the chosen voice", checkable=True),
    Spec("interrupt", "Voice", "Interrupt", "Esc", "interrupt",
         "Drop what is being said; the mouth goes to rest at once"),
    Spec("use_microphone", "Voice", "Use microphone", "Ctrl+1", "mic",
         "Speak with your own voice", group=True),
    Spec("open_audio", "Voice", "Open audio file…", "Ctrl+2", "audio-file",
         "Let the character speak a recording of any common format"),
    Spec("play_sample", "Voice", "Play a sample", "Ctrl+3", "sample",
         "Hear the character speak a short sample"),
    Spec("mute", "Voice", "Mute microphone", "Ctrl+M", "mic-off",
         "Send silence instead of the microphone", checkable=True, group=True),
    Spec("monitor", "Voice", "Monitor through speaker", "Ctrl+Shift+M", "speaker",
         "Hear the microphone, delayed so that lips and sound agree", checkable=True),
    Spec("resync", "Voice", "Resync sound and lips", "Ctrl+Shift+Y", "resync",
         "Measure sound against picture anew and correct it"),
    Spec("refresh_devices", "Voice", "Refresh devices", "Ctrl+Shift+D", "resync",
         "Look for microphones and speakers again"),
    Spec("record", "Record", "Record video", "Ctrl+R", "record",
         "Record picture and sound as an MP4 file, 704 × 1088", checkable=True, tone="danger"),
    Spec("pause_recording", "Record", "Pause recording", "Ctrl+Shift+R", "pause",
         "Pause or go on with the recording", checkable=True),
    Spec("snapshot", "Record", "Save snapshot", "Ctrl+P", "snapshot",
         "Save the picture as a PNG file of exactly 704 × 1088"),
    Spec("show_recordings", "Record", "Show recordings folder", "Ctrl+Shift+E", "open",
         "Open the folder with recordings and snapshots", group=True),
    Spec("fit", "View", "Fit to window", "F7", "fit",
         "Scale the picture to the window", checkable=True),
    Spec("one_to_one", "View", "Actual size", "F8", "one-to-one",
         "One picture pixel on one screen pixel; drag to move", checkable=True),
    Spec("hud", "View", "Frame rate and latency", "F6", "hud",
         "Show or hide the figures over the picture", checkable=True),
    Spec("stage", "View", "Full screen", "F11", "fullscreen",
         "Show nothing but the face, full screen; Esc closes it", checkable=True),
    Spec("panel_character", "View", "Character panel", "F2", "character",
         "Show or hide the character panel", checkable=True, group=True),
    Spec("panel_voice", "View", "Voice panel", "F3", "voice",
         "Show or hide the voice panel", checkable=True),
    Spec("panel_timings", "View", "Timings panel", "F4", "timings",
         "Show or hide the timings panel", checkable=True),
    Spec("panel_log", "View", "Log panel", "F5", "log",
         "Show or hide the log", checkable=True),
    Spec("panel_models", "View", "Models panel", "F12", "models",
         "Show or hide the models: what is installed, what it needs, how fast it is",
         checkable=True),
    Spec("only_face", "View", "Hide all panels", "F9", "panels",
         "Give the face the whole window, or bring the panels back", checkable=True),
    Spec("reset_window", "View", "Reset window layout", "Ctrl+Shift+W", "reset",
         "Put all panels back where they were at first", group=True),
    Spec("export_timings", "Tools", "Export timings…", "Ctrl+E", "export",
         "Save the last 60 seconds of stage times as CSV"),
    Spec("save_log", "Tools", "Save log…", "Ctrl+Shift+L", "log",
         "Save the log as a text file"),
    Spec("refresh_models", "Tools", "Look for models again", "Ctrl+Shift+F", "resync",
         "Ask the engine again which models are installed and what memory is free", group=True),
    Spec("add_models_folder", "Tools", "Look for models in another folder…", "Ctrl+Shift+N",
         "open", "Let the local engine look in a further folder; it restarts for that"),
    Spec("quality", "Tools", "Lip-sync quality…", "Ctrl+L", "sample",
         "Measure on a set of clips whether the lips fit the sound, and compare runs", group=True),
    Spec("restart_engine", "Tools", "Restart engine", "Ctrl+Shift+K", "engine",
         "Stop the engine and start it again; the character stays", group=True),
    Spec("doctor", "Tools", "Check this machine", "Ctrl+D", "doctor",
         "What this machine has and lacks, and the remedy for each"),
    Spec("shortcuts", "Help", "Keyboard shortcuts", "F1", "keyboard",
         "All actions and their keys on one sheet"),
    Spec("whats_this", "Help", "What is this?", "Shift+F1", "help",
         "Click anything afterwards to read what it does"),
    Spec("about", "Help", "About Avatar Studio", "Ctrl+F1", "info",
         "Versions and licences", group=True),
)
# fmt: on
MENUS = tuple(dict.fromkeys(row.menu for row in TABLE))


def build(parent: QWidget) -> dict[str, QAction]:
    """A QAction for every row, owned by `parent` and working in the whole window."""
    return {row.id: make(row, parent) for row in TABLE}


def make(row: Spec, parent: QWidget) -> QAction:
    action = QAction(icons.icon(row.icon, row.tone), row.text, parent)
    action.setObjectName(row.id)
    action.setShortcut(QKeySequence(row.shortcut))
    action.setToolTip(f"{row.tooltip}  ({keys(row.shortcut)})")
    action.setStatusTip(row.tooltip)
    action.setWhatsThis(f"{row.text.rstrip('…')}: {row.tooltip}. Key: {keys(row.shortcut)}.")
    action.setProperty("icon_name", row.icon)
    action.setCheckable(row.checkable)
    parent.addAction(action)
    return action


def keys(shortcut: str) -> str:
    """A shortcut as this platform writes it."""
    return QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)


def find(action_id: str) -> Spec:
    return next(row for row in TABLE if row.id == action_id)
