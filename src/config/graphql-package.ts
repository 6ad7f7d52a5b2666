import { RefoldError } from '../errors.ts';

/**
 * Imports a module that needs `graphql`, a peer dependency that the application installs. If it is missing or too old, Node's own error
 * does not say what to do; this one does.
 *
 * @throws RefoldError `INVALID_CONFIG`
 */
export async function importWithGraphql<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const installed = await import('graphql').then(({ version }) => version).catch(() => undefined);
    if (installed === undefined || !isSupported(installed)) throw unsuitableGraphql(installed, error);
    throw error;
  }
}

/** Whether the version is in the range of the peer dependency in `package.json`. */
export function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major === 17 || (major === 16 && minor >= 10);
}

export function unsuitableGraphql(installed: string | undefined, cause?: unknown): RefoldError {
  const found = installed === undefined ? 'The npm package graphql is missing.' : `graphql ${installed} is installed.`;
  return graphqlError(`${found} ${needs} Run \`npm install graphql@17\`.`, cause);
}

export function severalGraphqls(version: string, user: string): RefoldError {
  const found = `Several copies of graphql are installed: Refold uses ${version}, and ${user} another one.`;
  return graphqlError(`${found} ${needs} Keep one of them: \`npm ls graphql\` shows them.`);
}

const needs = 'Refold needs one copy of graphql: 16.10 or newer, or 17.';

function graphqlError(message: string, cause?: unknown): RefoldError {
  return new RefoldError('INVALID_CONFIG', message, {}, { cause });
}
