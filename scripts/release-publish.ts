/**
 * `npm run release:publish`: publishes both packages, unless the registry has their version. The release workflow runs it: npm then signs where
 * and from what they were built, and compares the repository.
 */
import { execFileSync } from 'node:child_process';

const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
const folders = ['.', 'create-refold'];
if (server && repository)
  for (const cwd of folders)
    npm(cwd, 'pkg', 'set', `repository.type=git`, `repository.url=git+${server}/${repository}.git`);

// It also tags the release, and prints the tag for the workflow.
execFileSync('changeset', ['publish'], { stdio: 'inherit' });

// Changesets does not know the second package, which always has the version of the first.
const [name, version] = ['name', 'version'].map((field) => JSON.parse(npm('create-refold', 'pkg', 'get', field)));
if (isPublished(`${name}@${version}`)) console.log(`${name}@${version} is published already.`);
else npm('create-refold', 'publish', '--access', 'public');

function isPublished(specifier: string): boolean {
  try {
    return npm('.', 'view', specifier, 'version').trim() !== '';
  } catch (error) {
    if (error instanceof Error && error.message.includes('E404')) return false;
    throw error;
  }
}

function npm(cwd: string, ...parameters: readonly string[]): string {
  return execFileSync('npm', parameters, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
