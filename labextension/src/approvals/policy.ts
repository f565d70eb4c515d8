/** Keeps a person's settings and the server's approval policy alike. */
import type { ISignal } from '@lumino/signaling';
import type { ILiveModel } from '../tokens';
import type { IApprovalPolicy, PolicyKind } from '../wire';

/** What a person has set; what they have not is as the server has it. */
type Wishes = Partial<Omit<IApprovalPolicy, 'forced'>>;

/** What is used of a plugin's settings. */
export interface IPolicySettings {
  readonly user: Readonly<Record<string, unknown>>;
  readonly changed: ISignal<unknown, void>;
  set(key: string, value: string): Promise<void>;
}

const KINDS: readonly PolicyKind[] = ['notebook', 'kernel', 'scratch', 'edits'];

const MODES: readonly unknown[] = [
  ...['none', 'first', 'always'],
  ...['propose', 'apply']
];

/** What is wished otherwise than it is. */
function differences(
  user: IPolicySettings['user'],
  policy: IApprovalPolicy
): Wishes {
  const keys = KINDS.filter(
    key => MODES.includes(user[key]) && user[key] !== policy[key]
  );
  return Object.fromEntries(keys.map(key => [key, user[key]]));
}

/**
 * Have the server keep what a person sets.
 *
 * The server has the last word, and says what its configuration forces. What is
 * set and differs is sent once when the page opens, unless that needs a
 * passphrase, and when the person changes it. What is changed elsewhere meanwhile
 * is taken over into the settings, or the next page would undo it.
 */
export function keepPolicy({ live, settings, onError }: IPolicyOptions): void {
  let known: string | null = null;
  const follow = async (policy: IApprovalPolicy) => {
    const differ = Object.keys(differences(settings.user, policy));
    for (const key of differ as PolicyKind[]) {
      await settings.set(key, policy[key]);
    }
  };
  const send = async (policy: IApprovalPolicy) => {
    const wished = differences(settings.user, policy);
    try {
      if (Object.keys(wished).length > 0) {
        await live.settle(live.api.setPolicy(wished));
      }
    } finally {
      await follow(live.now?.policy ?? policy);
    }
  };
  const onServer = () => {
    const { needs_passphrase, policy } = live.now ?? {};
    const now = JSON.stringify(policy) ?? null;
    if (!policy || now === known) {
      return;
    }
    const first = known === null;
    known = now;
    // Settings are files, which code in a kernel can write: without a
    // person's deed they do not lead to a question for the passphrase.
    const sends = first && !needs_passphrase;
    void (sends ? send(policy) : follow(policy)).catch(onError);
  };
  const onPerson = () => {
    if (live.now) {
      void send(live.now.policy).catch(onError);
    }
  };
  live.changed.connect(onServer);
  settings.changed.connect(onPerson);
  onServer();
}

/** What it takes to keep a policy. */
export interface IPolicyOptions {
  live: ILiveModel;
  settings: IPolicySettings;
  onError: (error: unknown) => void;
}
