/** Where a person types the server's passphrase. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import { ApiError } from '../api/errors';
import type { IAgentExecApi } from '../tokens';
import { element, styledButton } from '../ui/elements';
import { describeError } from '../ui/wording';

/**
 * Ask for the passphrase until it is the right one; false if they give up.
 *
 * A dialog of the browser's own, since JupyterLab shows its dialogs one after
 * the other, and the one that is open may wait for this.
 */
export function askPassphrase(
  api: Pick<IAgentExecApi, 'unlock'>,
  trans: TranslationBundle
): Promise<boolean> {
  const id = `jp-AgentExecPassphrase-${UUID.uuid4()}`;
  const dialog = element('dialog', 'jp-AgentExecPassphrase jp-Dialog-content');
  // Keys are for its field, not for the page.
  dialog.dataset.lmSuppressShortcuts = 'true';
  const title = element(
    'h2',
    'jp-Dialog-header',
    trans.__('Passphrase Required')
  );
  title.id = `${id}-title`;
  dialog.setAttribute('aria-labelledby', title.id);
  const why = element('p', '');
  why.textContent = trans.__(
    'Enter the passphrase of this server to make this decision. Code that agents run does not know it.'
  );
  const label = element('label', '', trans.__('Passphrase'));
  const field = element('input', 'jp-mod-styled');
  field.type = 'password';
  field.id = label.htmlFor = id;
  field.autocomplete = 'off';
  field.required = true;
  field.maxLength = 1000;
  const notice = element('div', '');
  notice.id = `${id}-notice`;
  notice.setAttribute('role', 'alert');
  const note = element('p', '');
  note.id = `${id}-note`;
  note.textContent = trans.__(
    'It stays valid on this page for 10 minutes. Do not save it in the browser: code that runs as you could read it there.'
  );
  field.setAttribute('aria-describedby', `${notice.id} ${note.id}`);
  const send = element('button', 'jp-mod-styled jp-mod-accept');
  send.type = 'submit';
  send.textContent = trans.__('Unlock');
  const cancel = styledButton(trans.__('Cancel'), 'reject', () =>
    dialog.close()
  );
  const actions = element('div', 'jp-AgentExecPassphrase-actions');
  actions.append(cancel, send);
  const form = element('form', '');
  form.append(title, why, label, field, notice, note, actions);
  dialog.append(form);
  document.body.append(dialog);
  const opener = document.activeElement;
  return new Promise(resolve => {
    let unlocked = false;
    form.addEventListener('submit', event => {
      event.preventDefault();
      if (field.readOnly) {
        return;
      }
      field.readOnly = true;
      notice.textContent = '';
      api
        .unlock(field.value)
        .then(() => {
          unlocked = true;
          dialog.close();
        })
        .catch(error => {
          notice.textContent = whatIsWrong(error, trans);
          field.setAttribute('aria-invalid', 'true');
          field.readOnly = false;
          field.select();
        });
    });
    dialog.addEventListener('close', () => {
      field.value = '';
      dialog.remove();
      if (opener instanceof HTMLElement) {
        opener.focus();
      }
      resolve(unlocked);
    });
    dialog.showModal();
    field.focus();
  });
}

/** Why it was not taken. */
function whatIsWrong(error: unknown, trans: TranslationBundle): string {
  if (error instanceof ApiError && error.code === 'passphrase_wrong') {
    return trans.__('Wrong passphrase.');
  }
  const { hint, title } = describeError(error, trans);
  return error instanceof ApiError && error.code === 'too_many_requests'
    ? hint
    : `${title}. ${hint}`;
}
