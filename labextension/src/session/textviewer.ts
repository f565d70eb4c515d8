/** The whole text that an execution printed, part by part. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import type { IAgentExecApi } from '../tokens';
import { element } from '../ui/elements';
import { errorText, sizeText } from '../ui/wording';

/** Bytes read at once. */
const PART = 100_000;

/** A document to read; its end is fetched when it is asked for. */
export class TextViewer extends Widget {
  constructor(
    private readonly _api: IAgentExecApi,
    private readonly _executionId: string,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecText');
    this._text.tabIndex = 0;
    this._text.setAttribute('aria-label', _trans.__('Full output'));
    this._note.setAttribute('role', 'status');
    this._more.type = 'button';
    this._more.addEventListener('click', () => void this._read());
    const footer = element('div', 'jp-AgentExecText-footer');
    footer.append(this._note, this._more);
    this.node.append(this._text, footer);
    this.node.tabIndex = -1;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this._offset === 0) {
      void this._read();
    }
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this._text.focus();
  }

  private async _read(): Promise<void> {
    const trans = this._trans;
    this._more.hidden = true;
    this._note.textContent = trans.__('Loading…');
    try {
      const range = await this._api.getText(
        this._executionId,
        this._offset,
        PART
      );
      this._text.append(range.text);
      this._offset = range.next_offset ?? range.total_bytes;
      this._more.hidden = range.next_offset === null;
      this._more.textContent = trans.__('Show more');
      this._note.textContent = this._describe(range);
    } catch (error) {
      this._note.textContent = errorText(error, trans);
      this._more.textContent = trans.__('Try again');
      this._more.hidden = false;
    }
  }

  private _describe(range: {
    total_bytes: number;
    omitted_bytes: number;
  }): string {
    const trans = this._trans;
    const shown = trans.__(
      '%1 of %2',
      sizeText(this._offset),
      sizeText(range.total_bytes)
    );
    return range.omitted_bytes === 0
      ? shown
      : trans.__(
          '%1; another %2 was printed but not kept',
          shown,
          sizeText(range.omitted_bytes)
        );
  }

  private readonly _more = element('button', 'jp-mod-styled');
  private readonly _note = element('span', '');
  private readonly _text = element('pre', '');
  private _offset = 0;
}
