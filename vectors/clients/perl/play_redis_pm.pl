# Plays the vectors on the server at REDIS_URL: perl play_redis_pm.pl [file ...]; needs Redis.pm.
# With - for the files it makes the reservations that its input says.
use v5.36; use FindBin qw($Bin); use IO::File; use JSON::PP; use Redis;
require "$Bin/redis_pm.pl";

my ($password, $server) = $ENV{REDIS_URL} =~ m{^redis://(?:[^/@]*:([^/@]*)@)?([^/]+)} or die 'no REDIS_URL';
my $client = Redis->new(server => $server, reconnect => 2, $password ? (password => $password) : ());
my ($name, %counts) = (sprintf('tatami:%08x%08x', rand 2**32, rand 2**32), passed => 0, failed => 0);

sub reservations { # reserve,key,kind,amount,period_ns,burst,name,cost,key,... or settle,used,...
    my ($reserve, $settle) = reserver($client, "$Bin/../../../lua/limits_v1.lua");
    my $held;
    STDOUT->autoflush;
    while (my $line = <STDIN>) {
        chomp $line;
        my ($verb, @words) = split /,/, $line, -1;
        if ($verb eq 'reserve') {
            my @asks;
            while (my ($key, @ask) = splice @words, 0, 7) {
                my %limit; @limit{qw(kind amount period_ns burst name)} = @ask;
                push @asks, [$key, \%limit, $ask[5]];
            }
            eval {
                $held = $reserve->(@asks);
                say join '|', $held->@{qw(status retry_after_ns)}, $held->{binds} // '', map { @$_ } $held->{results}->@*;
            };
        } else {
            eval { $settle->($held, @words); say 'settled' };
        }
        say 'error ', $@ =~ s/^\[\w+\] |\n//gr if $@;
    }
}

sub check ($label, $got, $want) {
    $counts{$got eq $want ? 'passed' : 'failed'}++;
    say "$label: got $got, want $want" if $got ne $want;
}

sub fit ($got, $want) { # as a text; want, where got is like it: 7, a number in 0..7, a text, a list of these
    return '[' . join(',', map { fit($got->[$_], ref $want ? $want->[$_] // '' : '') } 0 .. $#$got) . ']' if ref $got;
    my ($least, $most) = split /\.\./, $want;
    return $most && $least <= $got && $got <= $most ? $want : $got;
}

sub play ($script, $groups) {
    my $path = "$Bin/../../../lua/$script.lua";
    for my $group (@$groups) {
        my ($lead, $setting, $tests, $streams) = $group->@{qw(argv setting tests streams)};
        my $text = join '', $setting->{prelude}, IO::File->new($path)->getlines;
        my $call = $setting->{prelude} eq '' ? script($client, $path)
            : sub ($keys, @args) { $client->eval($text, scalar @$keys, @$keys, @args) };
        for my $test (@$tests) {
            my ($before, $got, $want) = $test->{keys};
            my @keys = map { "$name:$_" } 0 .. $#$before;
            my $named = {each => [@keys], none => [], again => [@keys, $keys[0]]}->{$setting->{keys}};
            for (0 .. $#keys) {
                $client->set($keys[$_], pack 'H*', $before->[$_]{hex}) if $before->[$_]{kind} eq 'string';
                $client->rpush($keys[$_], 'a') if $before->[$_]{kind} eq 'list';
            }
            for my $step ($test->{steps}->@*) {
                my ($expire, $reply, $states, $ttls, $error) = $step->@{qw(expire reply state ttl_ms error)};
                for (grep { $expire->[$_] ne '' } 0 .. $#keys) {
                    $expire->[$_] eq 'none' ? $client->persist($keys[$_]) : $client->pexpire($keys[$_], $expire->[$_]);
                }
                my $answer = eval { fit([$call->($named, @$lead, $step->{argv}->@*)], $reply) } // $@ =~ s/^\[\w+\] |\n//gr;
                $answer = $error if $error && $answer =~ /^\Q$error/;
                $got = "$answer " . fit([map {
                    my $state = $client->type($keys[$_]) eq 'string' ? unpack 'H*', $client->get($keys[$_]) : '';
                    $state = $states->[$_] if $state =~ /^$states->[$_]\z/;
                    [$state, fit($client->pttl($keys[$_]), $ttls->[$_])];
                } 0 .. $#keys], '');
                $want = ($error || fit($reply, '')) . ' ' . fit([map { [$states->[$_], $ttls->[$_]] } 0 .. $#keys], '');
                last if $got ne $want;
            }
            check("$script $test->{id}", $got, $want);
            $client->del(@keys);
        }
        for my $stream (@$streams) {
            my ($now_ns, $replies) = ($stream->{now_ns}, '');
            for (1 .. $stream->{calls}) {
                my @reply = $call->([$name], @$lead, $stream->{cost}, $now_ns);
                $replies .= "@reply\n"; $now_ns += $reply[2];
            }
            check("$script $stream->{id}", Digest::SHA::sha256_hex($replies), $stream->{sha256});
            $client->del($name);
        }
    }
}

exit(reservations() // 0) if "@ARGV" eq '-';
check('64 bits', $client->incrby($name, '9223372036854775807'), '9223372036854775807');
$client->del($name);
play(decode_json(join '', IO::File->new($_)->getlines)->@{qw(script groups)}) for @ARGV ? @ARGV : glob "$Bin/../../*_v*.json";
say "$counts{passed} passed, $counts{failed} failed";
exit($counts{failed} > 0);
