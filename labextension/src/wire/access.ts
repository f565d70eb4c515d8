/** Agent tokens on the wire: what a person lets an agent do. */
import type { ApprovalMode } from '../wire';

/** How an agent came in: with all that a person may, or with a token. */
export type Access = 'full' | 'token';

/** The token with which a session was opened. */
export interface ITokenRef {
  id: string;
  label: string;
}

/** The most that may be used with a token; null is the server's own bound. */
export interface ITokenCaps {
  executions_per_minute: number | null;
  concurrent_executions: number | null;
  wall_seconds: number | null;
  output_bytes: number | null;
  kernels: number | null;
  /** False: no completion and no documentation from kernels. */
  completion?: boolean | null;
}

/** A bound that is a number. */
export type TokenBound = Exclude<keyof ITokenCaps, 'completion'>;

/** What a person asks for who gives an agent a token. */
export interface IMintToken {
  label: string;
  /** `exec:scratch`, `exec:notebook:<pattern>`, `files`, … */
  scopes: string[];
  /** Seconds. */
  expires_in: number;
  /** Null is what the policy says. */
  approval: ApprovalMode | null;
  caps: ITokenCaps;
}

/** An agent token, without its secret. */
export interface IAgentToken {
  id: string;
  label: string;
  scopes: string[];
  approval: ApprovalMode | null;
  caps: ITokenCaps;
  /** Who minted it. */
  username: string;
  status: 'active' | 'expired' | 'revoked';
  created_at: string;
  expires_at: string;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** How to hand a token to an agent: text to paste, with the secret in it. */
export interface ITokenConfiguration {
  /** For whom: `mcp`, `mcp-stdio`, `python`, `curl`. */
  name: string;
  language: 'json' | 'python' | 'shell';
  text: string;
}

/** A token that has just been minted; the secret is told this once. */
export interface IMintedToken {
  token: IAgentToken;
  secret: string;
  configurations: ITokenConfiguration[];
}

/** What decisions show after the passphrase was typed. Never kept on a disk. */
export interface IUnlocked {
  unlock: string;
  expires_at: string;
}

/** Tokens, the newest first. */
export interface ITokenList {
  tokens: IAgentToken[];
}
