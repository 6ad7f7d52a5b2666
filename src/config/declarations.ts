import type { Authenticator } from '../access.ts';
import type { Command } from '../commands/define-command.ts';
import { invalidDeclaration } from '../errors.ts';
import type { Import } from '../events/define-import.ts';
import type { EventFamily } from '../events/event-family.ts';
import { expectDistinctNames } from '../events/event-names.ts';
import { checkRelations } from '../projections/declaration/check-relations.ts';
import type { Projection } from '../projections/projection/projection.ts';
import type { Reactor } from '../reactors/reactor.ts';
import { checkReactorVersions } from '../reactors/versioned-reactor.ts';
import { invalidConfig } from './option-checks.ts';

/** The declarations of an application. */
export interface Declarations {
  /** Event families that no projection and no command uses; the others are collected automatically. */
  readonly events?: readonly EventFamily[];
  readonly projections?: readonly Projection[];
  readonly commands?: readonly Command[];
  /** Reactors: side effects of events, and workflows. Several versions of a reactor may stand beside each other. */
  readonly reactors?: readonly Reactor[];
  /** The imports that `refold import` can run. */
  readonly imports?: readonly Import[];
  /**
   * Authenticates callers; see {@link jwt}. If it is set, projections and commands without `access` require an authenticated viewer.
   * @default none: everybody is anonymous, and declarations without `access` are open to everybody who reaches the gateway
   */
  readonly auth?: Authenticator;
}

/** Checks that the declarations, each valid by itself, fit together. @throws RefoldError `INVALID_CONFIG`, `INVALID_DECLARATION` */
export function checkDeclarations(options: Declarations): void {
  checkKinds(options);
  const { projections = [], commands = [], reactors = [] } = options;
  checkProjections(projections);
  checkRelations(projections);
  checkNames(projections, commands);
  checkReactorVersions(reactors);
  checkAuth(options, projections, commands);
}

function checkKinds(options: Declarations): void {
  const lists = [
    ['events', 'event-family', 'defineEvents'],
    ['projections', 'projection', 'defineProjection'],
    ['commands', 'command', 'defineCommand'],
    ['reactors', 'reactor', 'defineReactor'],
    ['imports', 'import', 'defineImport'],
  ] as const;
  for (const [list, kind, maker] of lists) {
    for (const declared of options[list] ?? []) {
      if (declared?.kind !== kind) throw invalidConfig(`'${list}' holds something that ${maker} did not make.`);
    }
  }
}

function checkProjections(projections: readonly Projection[]): void {
  const ids = new Set<string>();
  for (const projection of projections) {
    if (ids.has(projection.id))
      throw invalidDeclaration(projection.id, 'is declared twice. Give one of them the next version.');
    ids.add(projection.id);
  }
}

function checkNames(projections: readonly Projection[], commands: readonly Command[]): void {
  const owners = new Map<string, string>();
  for (const projection of projections) {
    const { type, single, list } = projection.graphql;
    for (const name of [type, single, list]) {
      const owner = owners.get(name) ?? projection.name;
      if (owner !== projection.name)
        throw invalidDeclaration(
          projection.id,
          `its GraphQL name '${name}' belongs to '${owner}' already. Set 'graphql' names.`,
        );
      owners.set(name, projection.name);
    }
  }
  const seen = new Set<string>();
  for (const command of commands) {
    if (seen.has(command.name)) throw invalidDeclaration(`defineCommand('${command.name}')`, 'is declared twice.');
    seen.add(command.name);
  }
}

/** Access rules without an authenticator would refuse everybody, or would only seem to protect. */
function checkAuth({ auth }: Declarations, projections: readonly Projection[], commands: readonly Command[]): void {
  if (auth !== undefined && typeof auth !== 'function')
    throw invalidConfig("'auth' is a function from a request's credentials to a viewer, such as jwt({ … }).");
  const ruled = [...projections, ...commands].find(({ access }) => access !== undefined && access !== 'public');
  if (auth || !ruled) return;
  const subject = ruled.kind === 'projection' ? ruled.id : `defineCommand('${ruled.name}')`;
  throw invalidConfig(`${subject} declares 'access', but there is no authenticator. Set 'auth', such as jwt({ … }).`);
}

/** Returns all declared families, each once. @throws RefoldError `INVALID_DECLARATION` */
export function distinctFamilies(families: readonly EventFamily[]): readonly EventFamily[] {
  expectDistinctNames(families);
  return Object.freeze([...new Set(families)]);
}
