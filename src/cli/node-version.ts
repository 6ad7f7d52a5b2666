/** Returns why a version of Node, such as `20.11.1`, is not supported; undefined if it is. Must match `engines` in package.json. */
export function nodeProblem(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return undefined;
  return `Refold needs Node 22.18 or newer, this is ${version}. Install a newer one, or put it first in PATH.`;
}
