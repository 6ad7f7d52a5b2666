/** What the processes of one deployment share. */
export interface Deployment {
  /** The versions of `balance` that it declares besides the first. */
  readonly lowest: number;
  readonly highest: number;
  /** Behind a pooler in transaction mode. */
  readonly pooled: boolean;
}

const name = 'SOAK_DEPLOYMENT';

export function environmentOf(deployment: Deployment): Readonly<Record<string, string>> {
  return { [name]: JSON.stringify(deployment) };
}

export function deploymentOf(environment: Readonly<Record<string, string | undefined>>): Deployment {
  return JSON.parse(environment[name] ?? '{"lowest":1,"highest":1,"pooled":false}');
}
