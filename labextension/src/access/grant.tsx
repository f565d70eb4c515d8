/** What an agent may run without asking, and for how long. */
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { CommandIDs } from '../tokens';
import type { Execute, IAgentSession, ISessionModel } from '../tokens';
import type { Clock } from '../ui/clock';
import { momentText } from '../ui/wording';

/** The grant of a session's agent; null if it has ended. */
export function grantOf(
  { grant }: IAgentSession,
  now: number
): IAgentSession['grant'] {
  const until = grant?.until ?? null;
  return until === null || Date.parse(until) > now ? grant : null;
}

/** How long an agent runs code without asking. */
export function grantText(
  { until }: NonNullable<IAgentSession['grant']>,
  now: number,
  trans: TranslationBundle
): string {
  return until === null
    ? trans.__('Runs code without asking until the kernel restarts')
    : trans.__('Runs code without asking until %1', momentText(until, now));
}

/** At the head of a session; empty if the agent asks. */
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
    if (this._grant === null) {
      this._onChanged();
    }
  }

  protected render(): JSX.Element {
    const { clock, execute, trans } = this._options;
    return (
      <UseSignal signal={this._session.changed}>
        {() => {
          const grant = this._grant;
          return (
            grant && (
              <>
                {grantText(grant, clock.now(), trans)}{' '}
                <button
                  type="button"
                  className="jp-AgentExec-link"
                  onClick={() => {
                    const { id } = this._session;
                    const args = { session_id: id };
                    void execute(CommandIDs.withdrawGrant, args);
                  }}
                >
                  {trans.__('Ask again')}
                </button>
              </>
            )
          );
        }}
      </UseSignal>
    );
  }

  /** What the user lets the agent do; null if it asks. */
  private get _grant(): IAgentSession['grant'] {
    const { session } = this._session;
    return session && grantOf(session, this._options.clock.now());
  }

  private _onChanged(): void {
    this._options.clock.set(this, (this._grant?.until ?? null) !== null);
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
