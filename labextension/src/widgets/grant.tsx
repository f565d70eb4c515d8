/** Until when all that a session asks for runs without asking. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { Execute, ISessionModel } from '../tokens';
import type { Clock } from './clock';
import { momentText } from './wording';

/** At the head of a session; empty if there is no such time. */
export class SessionGrant extends ReactWidget {
  constructor(
    private readonly _session: ISessionModel,
    private readonly _options: SessionGrant.IOptions
  ) {
    super();
    this.addClass('jp-AgentExecGrant');
    _session.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._options.clock.set(this, false);
      super.dispose();
    }
  }

  /** Look whether the time is over: no event tells so. */
  tick(): void {
    if (this._until === null) {
      this._onChanged();
    }
  }

  protected render(): JSX.Element {
    const { clock, execute, trans } = this._options;
    return (
      <UseSignal signal={this._session.changed}>
        {() => {
          const until = this._until;
          return (
            until && (
              <>
                {trans.__(
                  'Everything approved until %1',
                  momentText(until, clock.now())
                )}{' '}
                <button
                  type="button"
                  className="jp-AgentExec-link"
                  onClick={() => {
                    const { id } = this._session;
                    const args = { session_id: id, minutes: 0 };
                    void execute(CommandIDs.grant, args);
                  }}
                >
                  {trans.__('End approval')}
                </button>
              </>
            )
          );
        }}
      </UseSignal>
    );
  }

  /** When it ends; null if it has ended. */
  private get _until(): string | null {
    const until = this._session.session?.approved_until ?? null;
    const { clock } = this._options;
    return until && Date.parse(until) > clock.now() ? until : null;
  }

  private _onChanged(): void {
    this._options.clock.set(this, this._until !== null);
    this.update();
  }
}

/** The options of it. */
export namespace SessionGrant {
  /** What it is made of. */
  export interface IOptions {
    clock: Clock;
    trans: TranslationBundle;
    execute: Execute;
  }
}
