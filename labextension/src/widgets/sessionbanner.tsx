/** What stands above a session that is shown as a notebook. */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import * as React from 'react';
import type { LiveNotebook } from '../model/livenotebook';
import type { IAgentSession } from '../tokens';
import { activityIcon } from './icons';
import { describeError, whoText } from './wording';

/**
 * Says whose session it is, and that it can only be read.
 *
 * It is seen when the notebook is, and the session is followed only then.
 */
export class SessionBanner extends ReactWidget {
  constructor(
    private readonly _live: LiveNotebook,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-AgentExecBanner');
    this.node.setAttribute('role', 'note');
    _live.changed.connect(this.update, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._live.dispose();
      super.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._live.isActive = this.isVisible;
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._live.isActive = true;
  }

  protected override onBeforeHide(msg: Message): void {
    this._live.isActive = false;
    super.onBeforeHide(msg);
  }

  protected override onBeforeDetach(msg: Message): void {
    this._live.isActive = false;
    super.onBeforeDetach(msg);
  }

  protected render(): JSX.Element {
    const { session, state } = this._live;
    const trans = this._trans;
    return (
      <>
        <activityIcon.react tag="span" className="jp-AgentExec-icon" />
        <strong>{trans.__('Agent session, read-only')}</strong>
        {session && <Facts session={session} trans={trans} />}
        {state.phase === 'loading' && <span>{trans.__('Loading…')}</span>}
        {state.phase === 'error' && (
          <span role="status" className="jp-AgentExecBanner-error">
            {describeError(state.error, trans).title}
          </span>
        )}
      </>
    );
  }
}

function Facts(props: {
  session: IAgentSession;
  trans: TranslationBundle;
}): JSX.Element {
  const { session, trans } = props;
  const { executions, status } = session;
  return (
    <>
      <bdi>{whoText(session, trans)}</bdi>
      <span>{status === 'open' ? trans.__('open') : trans.__('closed')}</span>
      <span>{trans._n('%1 cell', '%1 cells', executions, executions)}</span>
    </>
  );
}
