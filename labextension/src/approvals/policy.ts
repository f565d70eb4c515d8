/** Keeps a person's settings and the server's approval policy alike. */
import type { ISignal } from '@lumino/signaling';
import type { ILiveModel } from '../tokens';
import type { IApprovalPolicy, PolicyKind } from '../wire';

/** What a person has set; what they have not is as the server has it. */
export type Wishes = Partial<Omit<IApprovalPolicy, 'forced'>>;

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

/** Whether a setting is valid, and otherwise than the server has it. */
function differs(wish: unknown, policy: string): boolean {
  return MODES.includes(wish) && wish !== policy;
}

/** What is wished otherwise than it is: what can be asked, and what cannot. */
export function differences(
  settings: IPolicySettings['user'],
  policy: IApprovalPolicy
): { open: Wishes; forced: PolicyKind[] } {
  const keys = KINDS.filter(key => differs(settings[key], policy[key]));
  const forced = policy.forced.filter(kind => keys.includes(kind));
  const open = keys.filter(key => !policy.forced.includes(key));
  return {
    open: Object.fromEntries(open.map(key => [key, settings[key]])),
    forced
  };
}

/**
 * Have the server keep what a person sets.
 *
 * The server has the last word. What is set and differs is sent once when the
 * page opens, unless that needs a passphrase, and when the person changes it. What is changed elsewhere
 * meanwhile is taken over into the settings, or the next page would undo it.
 */
export function keepPolicy({
  live,
  settings,
  onForced,
  onError
}: IPolicyOptions): void {
  let known: string | null = null;
  const follow = async (policy: IApprovalPolicy) => {
    const { forced, open } = differences(settings.user, policy);
    for (const key of KINDS) {
      if (forced.includes(key) || open[key] !== undefined) {
        await settings.set(key, policy[key]);
      }
    }
  };
  const send = async (policy: IApprovalPolicy) => {
    const { forced, open } = differences(settings.user, policy);
    if (forced.length > 0) {
      onForced(forced);
    }
    try {
      if (Object.keys(open).length > 0) {
        await live.settle(live.api.setPolicy(open));
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
  /** Tells a person that the configuration decides. */
  onForced: (kinds: readonly PolicyKind[]) => void;
  onError: (error: unknown) => void;
}
