# Plays the vectors on the server at REDIS_URL: perl redis_pm.pl [file ...]; needs Redis.pm.
use v5.36;
use FindBin qw($Bin); use JSON::PP; use Redis;
# sample
use Digest::SHA qw(sha1_hex);

sub limiter {
    my ($client, $path) = @_;
    open my $file, '<:raw', $path or die "$path: $!";
    my $text = do { local $/; <$file> };
    my $sha = sha1_hex($text);

    # args: amount, period_ns, burst or mode, cost[, now_ns].
    # Returns (status, remaining, retry_after_ns, reset_after_ns).
    return sub {
        my ($key, @args) = @_;
        my @reply = eval { $client->evalsha($sha, 1, $key, @args) };
        return @reply unless $@;
        die $@ unless $@ =~ /^\[evalsha\] NOSCRIPT/;
        return $client->eval($text, 1, $key, @args);
    };
}
# end
my ($password, $server) = $ENV{REDIS_URL} =~ m{^redis://(?:[^/@]*:([^/@]*)@)?([^/]+)} or die 'no host in REDIS_URL';
my $client = Redis->new(server => $server, $password ? (password => $password) : ());
my ($key, %counts) = (sprintf('tatami:%08x%08x', rand 2**32, rand 2**32), passed => 0, failed => 0);
sub check ($name, $got, $want) {
    $counts{$got eq $want ? 'passed' : 'failed'}++;
    say "$name: got $got, want $want" if $got ne $want;
    $client->del($key);
}
check('64 bits', $client->incrby($key, '9223372036854775807'), '9223372036854775807');
for my $path (@ARGV ? @ARGV : glob "$Bin/../*_v*.json") {
    open my $file, '<:raw', $path or die "$path: $!";
    my ($script, $groups) = decode_json(join '', <$file>)->@{qw(script groups)};
    my $allow = limiter($client, "$Bin/../../lua/$script.lua");
    for my $group (@$groups) {
        for my $test ($group->{tests}->@*) {
            my ($held, $got, $want) = $test->{key};
            $client->set($key, pack 'H*', $held->{hex}) if $held->{kind} eq 'string';
            $client->rpush($key, 'a') if $held->{kind} eq 'list';
            $client->pexpire($key, $held->{ttl_ms}) if length $held->{ttl_ms};
            for my $step ($test->{steps}->@*) {
                my $said = eval { join ' ', $allow->($key, @{$group->{argv}}, @{$step->{argv}}) } // (split ' ', $@)[1];
                my ($least, $most) = length $step->{ttl_ms}[0] ? $step->{ttl_ms}->@* : (-2, -1); # no key, no expiry
                my $ttl = $client->pttl($key);
                my $state = $client->type($key) eq 'string' ? unpack 'H*', $client->get($key) : '';
                $got = "$said|$state|" . ($least <= $ttl && $ttl <= $most ? "$least..$most" : $ttl);
                $want = ($step->{error} || "@{$step->{reply}}") . "|$step->{state}|$least..$most";
                last if $got ne $want;
            }
            check("$script $test->{id}", $got, $want);
        }
        for my $stream ($group->{streams}->@*) {
            my ($now_ns, $replies) = ($stream->{now_ns}, '');
            for (1 .. $stream->{calls}) {
                my @reply = $allow->($key, $group->{argv}->@*, $stream->{cost}, $now_ns);
                $replies .= "@reply\n"; $now_ns += $reply[2];
            }
            check("$script $stream->{id}", Digest::SHA::sha256_hex($replies), $stream->{sha256});
        }
    }
}
say "$counts{passed} passed, $counts{failed} failed";
exit($counts{failed} > 0);
