/** What went wrong between this page and the server. */

/** The kinds of failure that a person can do something different about. */
export type Failure =
  'unreachable' | 'extension_missing' | 'not_allowed' | 'refused';

/** A request that the server refused, or that did not reach it. */
export class ApiError extends Error {
  constructor(
    readonly failure: Failure,
    message: string,
    readonly status: number | null = null,
    readonly code: string | null = null
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** A refusal's body, if it is one of ours. */
interface IProblem {
  message?: string;
  code?: string;
}

/** What a proxy or a hub answers in place of a server that it does not reach. */
const OF_PROXIES = [424, 502, 503, 504];

/** What a refusal's body says. */
function readProblem(body: string): IProblem {
  try {
    const problem = JSON.parse(body) as unknown;
    return typeof problem === 'object' && problem !== null ? problem : {};
  } catch {
    return {};
  }
}

/** The error for a response that is not a success. */
export async function refusal(response: Response): Promise<ApiError> {
  const { status } = response;
  const { message, code } = readProblem(await response.text());
  const text = message || response.statusText || String(status);
  if (OF_PROXIES.includes(status) && !code) {
    return new ApiError('unreachable', text, status);
  }
  if (status === 404 && !code) {
    return new ApiError('extension_missing', text, status);
  }
  const ofPassphrase = code?.startsWith('passphrase_') ?? false;
  if ((status === 401 || status === 403) && !ofPassphrase) {
    return new ApiError('not_allowed', text, status, code ?? null);
  }
  return new ApiError('refused', text, status, code ?? null);
}
