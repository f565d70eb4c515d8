/** What is known of an execution besides its source and outputs. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Panel, Widget } from '@lumino/widgets';
import { CommandIDs, isFinal } from '../tokens';
import type { Execute, IExecution } from '../tokens';
import { element, iconElement, linkButton } from './elements';
import { statusIcons } from './icons';
import { documentText, waitingText } from './notebookwording';
import { commentText, reviewText } from './review';
import {
  credentialWord,
  durationText,
  executionNotes,
  momentText,
  plainName,
  quoted,
  statusWord,
  whoText
} from './wording';

/** A line with number, status, duration, agent and time, and notes below. */
export class CellHeader extends Panel {
  /**
   * @param _trans - Translates what is said.
   * @param _execute - Runs commands.
   * @param actions - Buttons at the end of the line.
   */
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _execute: Execute,
    actions: readonly Widget[]
  ) {
    super();
    this.addClass('jp-AgentExecCell-header');
    const status = element('span', 'jp-AgentExecCell-status');
    status.classList.add('jp-AgentExec-status');
    status.append(this._icon, this._word);
    const facts = new Widget();
    facts.addClass('jp-AgentExecCell-facts');
    const by = element('span', 'jp-AgentExecCell-by');
    by.append(this._agent, this._time);
    facts.node.append(this._prompt, status, this._duration, by);
    const line = new Panel();
    line.addClass('jp-AgentExecCell-line');
    [facts, ...actions].forEach(widget => line.addWidget(widget));
    this.addWidget(line);
    this.addWidget(new Widget({ node: this._notes }));
  }

  /** Show an execution. */
  render(execution: IExecution, now: number): void {
    const trans = this._trans;
    const { status, seq, accepted_at, execution_count } = execution;
    this._prompt.textContent = `[${execution_count ?? (isFinal(status) ? ' ' : '*')}]`;
    this._prompt.title = trans.__('Cell %1 of this session', seq);
    if (this._word.textContent !== statusWord(status, trans)) {
      this._word.textContent = statusWord(status, trans);
      this._icon.replaceChildren();
      statusIcons[status]?.element({ container: this._icon });
    }
    const credential = credentialWord(execution.token, trans);
    this._agent.textContent = `${credential} · ${quoted(execution.agent.name)}`;
    this._agent.title = whoText(execution, trans);
    this._time.dateTime = accepted_at;
    this._time.textContent = momentText(accepted_at, now);
    this._time.title = new Date(accepted_at).toLocaleString();
    this.tick(execution, now);
    const notes = executionNotes(execution, trans);
    if (execution.waiting_for && status === 'queued') {
      notes.push(waitingText(execution.waiting_for, trans));
    }
    const { review } = execution;
    if (review) {
      notes.push(reviewText(review, trans), commentText(review));
    }
    const items = notes.filter(Boolean).map(note => element('div', '', note));
    const placed = this._createDocumentNote(execution);
    if (this._notes.contains(document.activeElement)) {
      // What had the keyboard may be gone.
      this.node.closest<HTMLElement>('[role="article"]')?.focus();
    }
    this._notes.replaceChildren(...items, ...(placed ? [placed] : []));
    this._notes.hidden = this._notes.childElementCount === 0;
  }

  /** Where the execution's cell is in a notebook, or why there is none. */
  private _createDocumentNote(execution: IExecution): HTMLElement | null {
    const { document: placed, id } = execution;
    if (!placed) {
      return null;
    }
    const item = element('div', '');
    if (placed.status === 'discarded') {
      item.append(
        this._trans.__('Its cell was removed from the notebook.'),
        ' ',
        linkButton(this._trans.__('Undo'), () => {
          void this._execute(CommandIDs.undo, { execution_id: id });
        })
      );
      return item;
    }
    const isProposed = placed.status === 'proposed';
    const text = documentText(placed, this._trans);
    if (placed.status === 'not_written') {
      item.textContent = text;
      return item;
    }
    if (!placed.cell_id && !isProposed) {
      return null; // it is being written
    }
    const { path, cell_id } = placed;
    const label = isProposed
      ? this._trans.__('Go to the notebook')
      : this._trans.__('Go to the cell');
    const button = linkButton(label, () => {
      const args = { path, cell_id, execution_id: id };
      const { goToCell, goToProposal } = CommandIDs;
      void this._execute(isProposed ? goToProposal : goToCell, args);
    });
    button.title = [plainName(path), text].filter(Boolean).join('\n');
    item.append(button);
    return item;
  }

  /** Show how long it took, or has taken so far. */
  tick(execution: IExecution, now: number): void {
    const { duration, started_at, status } = execution;
    let text = '';
    if (duration !== null) {
      text = durationText(duration, this._trans);
    } else if (started_at && !isFinal(status)) {
      const elapsed = Math.floor((now - Date.parse(started_at)) / 1000);
      text = elapsed >= 1 ? durationText(elapsed, this._trans) : '';
    }
    if (this._duration.textContent !== text) {
      this._duration.textContent = text;
    }
  }

  private readonly _agent = element('span', 'jp-AgentExecCell-agent');
  private readonly _duration = element('span', 'jp-AgentExecCell-duration');
  private readonly _icon = iconElement();
  private readonly _notes = element('div', 'jp-AgentExecCell-notes');
  private readonly _prompt = element('span', 'jp-AgentExecCell-prompt');
  private readonly _time = element('time', 'jp-AgentExecCell-time');
  private readonly _word = element('span', '');
}
